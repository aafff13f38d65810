// Kafka credentials from the environment. A password must not be an argument of a command, because every user of the machine can read the
// arguments.

import { readFileSync } from "node:fs";
import { type Environment, variable } from "../../core/environment.ts";
import { LongshoreError, toError } from "../../core/errors.ts";
import type { KafkaBusOptions, KafkaSasl, KafkaTls } from "./options.ts";

const protocols = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"];
const mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const;

/** Empty when KAFKA_SECURITY_PROTOCOL is not set: without it, the other variables have no effect. */
export function kafkaSecurityIn(env: Environment): Pick<KafkaBusOptions, "ssl" | "sasl"> {
  const protocol = variable(env, "KAFKA_SECURITY_PROTOCOL")?.toUpperCase();
  if (protocol === undefined) return {};
  if (!protocols.includes(protocol)) throw bad("KAFKA_SECURITY_PROTOCOL", JSON.stringify(protocol), listed(protocols));
  return {
    ...(protocol.endsWith("SSL") ? { ssl: tlsIn(env) } : {}),
    ...(protocol.startsWith("SASL") ? { sasl: saslIn(env) } : {}),
  };
}

function tlsIn(env: Environment): true | KafkaTls {
  const files = { ca: "KAFKA_SSL_CA_FILE", cert: "KAFKA_SSL_CERT_FILE", key: "KAFKA_SSL_KEY_FILE" };
  const read = Object.entries(files).flatMap(([field, name]) => {
    const path = variable(env, name);
    return path === undefined ? [] : [[field, fileAt(name, path)] as const];
  });
  return read.length === 0 ? true : Object.fromEntries(read);
}

function saslIn(env: Environment): KafkaSasl {
  const name = variable(env, "KAFKA_SASL_MECHANISM")?.toUpperCase() ?? "PLAIN";
  const mechanism = mechanisms.find((each) => each === name);
  if (mechanism === undefined) throw bad("KAFKA_SASL_MECHANISM", JSON.stringify(name), listed(mechanisms));
  const username = variable(env, "KAFKA_SASL_USERNAME");
  if (username === undefined) throw bad("KAFKA_SASL_USERNAME", "absent", "the name of a Kafka user");
  // Not trimmed: spaces may be part of a password.
  const password = env.KAFKA_SASL_PASSWORD;
  if (password === undefined || password === "") throw bad("KAFKA_SASL_PASSWORD", "absent", "the password of that user");
  return { mechanism, username, password };
}

function fileAt(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw bad(name, `${path}, which cannot be read (${toError(cause).message})`, "a file in PEM", cause);
  }
}

const listed = (names: readonly string[]): string => `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;

function bad(field: string, value: string, expected: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${value}, expected ${expected}.`, { cause, detail: { field, expected } });
}
