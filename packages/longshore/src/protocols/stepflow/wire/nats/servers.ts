// Addresses and logins of NATS servers, and valid names of their objects, for the worker and the server.

import { LongshoreError } from "../../../../core/errors.ts";

export interface NatsServers {
  readonly servers: readonly string[];
  /**
   * Options of the NATS client. With `tls`, it refuses a server that does not speak TLS. It ignores the scheme of an address: without this
   * option it would show its login to such a server as plain text.
   */
  readonly access: {
    readonly user?: string;
    readonly pass?: string;
    readonly token?: string;
    readonly tls?: Readonly<Record<string, never>>;
  };
}

/**
 * Pings on every connection. A server that vanishes silently, or sends data that the client cannot read, is noticed within three intervals.
 * The client's default interval of two minutes is far too long.
 */
export const liveness = { pingInterval: 15_000, maxPingOut: 2 } as const;

export const urlDefault = "nats://localhost:4222";

/**
 * Accepts `nats://user:password@host:4222`, `nats://token@host:4222` and `host:4222`; several are separated by commas. When one of them
 * begins with `tls://`, all connections must use TLS.
 */
export function serversOf(url: string): NatsServers {
  const urls = url.split(",").map((each) => parse(each.trim(), url));
  const { username, password } = urls.find((each) => each.username !== "") ?? { username: "", password: "" };
  const [user, pass] = [decoded(username), decoded(password)];
  const login = user === "" ? {} : pass === "" ? { token: user } : { user, pass };
  const tls = urls.some(({ protocol }) => protocol === "tls:") ? { tls: {} } : {};
  return { servers: urls.map(({ protocol, host }) => `${protocol}//${host}`), access: { ...login, ...tls } };
}

/** A percent sign without two digits stays a percent sign. */
function decoded(text: string): string {
  return decodeURIComponent(text.replaceAll(/%([\da-f]{2})?/gi, (all, digits?: string) => (digits === undefined ? "%25" : all)));
}

function parse(text: string, all: string): URL {
  const withScheme = /^[a-z]+:\/\//i.test(text) ? text : `nats://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url !== undefined && url.hostname !== "" && (url.protocol === "nats:" || url.protocol === "tls:")) return url;
  const message = `The NATS server's address is ${JSON.stringify(all)}, expected one such as "${urlDefault}".`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "url" } });
}

/** Stream and consumer names become parts of subjects. */
export function objectName(field: string, name: string): string {
  if (/^[^\s.*>/\\]+$/.test(name)) return name;
  const expected = "a name without spaces, dots, slashes, * and >";
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${JSON.stringify(name)}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
