// Shared by all Kafka code: loads the client library (users install it separately), sets its options, and interprets its errors.

import type { ConnectionPool } from "@platformatic/kafka";
import { LongshoreError, toError } from "../../core/errors.ts";
import type { KafkaBusOptions } from "./options.ts";

export type KafkaModule = typeof import("@platformatic/kafka");

/** A healthy broker responds within milliseconds, except to requests that wait on purpose. */
export const requestMsMax = 10_000;
/** The time limit of a connection; after that, the broker counts as unreachable. */
const connectMsMax = 5_000;
/** How long an unreachable broker may delay closing. */
export const closeMsMax = 3_000;

export async function loadKafka(): Promise<KafkaModule> {
  try {
    return await import("@platformatic/kafka");
  } catch (cause) {
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      "Kafka needs the package @platformatic/kafka, which is not installed. Run: npm install @platformatic/kafka@1",
      { cause },
    );
  }
}

/** The library must not retry: it would use outdated metadata, and report nothing. */
export function clientOptions(options: KafkaBusOptions) {
  const { brokers, clientId = "longshore", ssl, sasl } = options;
  return {
    clientId,
    bootstrapBrokers: [...brokers],
    retries: 0,
    connectTimeout: connectMsMax,
    requestTimeout: requestMsMax,
    ...(ssl ? { tls: ssl === true ? {} : { ...ssl } } : {}),
    ...(sasl ? { sasl: { ...sasl } } : {}),
  };
}

/** Closes a client at once: its open requests fail, and it does not wait for unreachable brokers. */
export async function hangUp(
  client: { readonly connections: ConnectionPool; close(): Promise<void> },
  ...more: ConnectionPool[]
): Promise<void> {
  const open = [client.connections, ...more].flatMap((pool) => [...pool].map(([, connection]) => connection));
  const closed = Promise.allSettled([client.close(), ...more.map((pool) => pool.close())]);
  // The library itself waits until everything is sent. That would never end when a broker does not read.
  for (const { socket } of open) socket?.destroy();
  // Errors of the remaining requests are ignored.
  await within(closeMsMax, closed).catch(() => {});
}

interface KafkaError extends Error {
  findBy?(property: string, value: unknown): { readonly memberId?: string } | null;
  readonly response?: unknown;
}

/** The inner error that has one of these Kafka names, such as `REBALANCE_IN_PROGRESS`. */
export function named(error: unknown, ...names: string[]): { readonly memberId?: string } | undefined {
  for (const name of names) {
    const found = (error as KafkaError).findBy?.("apiId", name);
    if (found) return found;
  }
  return undefined;
}

/** Whether our metadata about partitions is outdated. */
export function isStale(error: unknown): boolean {
  return Boolean((error as KafkaError).findBy?.("hasStaleMetadata", true)) || named(error, "UNKNOWN_TOPIC_ID") !== undefined;
}

/** Errors that would repeat with every further try. */
export function refusalOf(error: unknown, name: string): LongshoreError | undefined {
  const unauthorized = named(
    error,
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION_FAILED",
    "UNSUPPORTED_SASL_MECHANISM",
  );
  const found = [...innerErrors(error)];
  const untrusted = found.find(({ code }) => typeof code === "string" && !code.startsWith(handshakeCodes) && untrustedCodes.test(code));
  if (untrusted !== undefined) {
    const what = `The certificate of ${name} is not trusted (${untrusted.message}).`;
    const message = `${what} Give that of its authority in kafka.ssl.ca, or name its file in NODE_EXTRA_CA_CERTS.`;
    return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause: error, detail: { field: "ssl.ca" } });
  }
  // An error while connecting is wrapped in the error of the connection.
  const unknown = found.some(({ code }) => code === "PLT_KFK_AUTHENTICATION");
  if (unauthorized === undefined && !unknown) return undefined;
  const set = unknown ? " Check kafka.sasl: its mechanism, username and password." : "";
  return new LongshoreError("LONGSHORE_UNAUTHORIZED", `${name} refuses this client: ${messageOf(error)}${set}`, { cause: error });
}

/** The codes of OpenSSL and Node for an invalid certificate. */
const untrustedCodes = /CERT|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)/;
/** The prefix of other error codes, which may also mention certificates. */
const handshakeCodes = "ERR_SSL_";

/** An error and all errors inside it. */
function* innerErrors(error: unknown): Generator<Error & { readonly code?: unknown }> {
  if (!(error instanceof Error)) return;
  yield error;
  const { errors } = error as { errors?: unknown };
  for (const inner of [error.cause, ...(Array.isArray(errors) ? errors : [])]) yield* innerErrors(inner);
}

/** A broker that requires TLS or a login gives no reason to a client without them: it closes the connection. */
export function hungUpHint(error: unknown, { ssl, sasl }: Pick<KafkaBusOptions, "ssl" | "sasl">): string {
  const missing = [ssl ? "" : "kafka.ssl", sasl ? "" : "kafka.sasl"].filter((name) => name !== "");
  const hungUp = missing.length > 0 && [...innerErrors(error)].some(({ message }) => /connection closed/i.test(message));
  return hungUp ? ` (does it require ${missing.join(" or ")}, which is not set?)` : "";
}

/** Errors of the library contain others; the innermost is the most specific. */
export function messageOf(error: unknown): string {
  const { errors } = error as { errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) return messageOf(errors.at(-1));
  const { message, cause } = toError(error);
  return cause instanceof Error ? `${message} (${messageOf(cause)})` : message;
}

/**
 * Rejects after `ms`, or when `signal` aborts. The request continues, and its result is ignored. The timer keeps the process alive until
 * the caller has its answer.
 */
export function within<T>(ms: number, request: Promise<T>, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const over = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
    };
    const timer = setTimeout(() => {
      over();
      reject(new LongshoreError("LONGSHORE_UNREACHABLE", `A broker has not answered within ${ms} ms.`));
    }, ms);
    const aborted = () => {
      over();
      reject(new LongshoreError("LONGSHORE_CLOSED", "The bus has been closed."));
    };
    if (signal?.aborted) aborted();
    else signal?.addEventListener("abort", aborted, { once: true });
    request.then(resolve, reject).finally(over);
  });
}
