// How a NATS server is named, and what its objects may be called; both halves read it alike.

import { LongshoreError } from "../../../../core/errors.ts";

export interface NatsServers {
  readonly servers: readonly string[];
  readonly login: { readonly user?: string; readonly pass?: string; readonly token?: string };
}

/**
 * Of every connection. A server that has vanished without a word, or whose words the client cannot read, is noticed within three of these;
 * the client's own two minutes are far too long.
 */
export const liveness = { pingInterval: 15_000, maxPingOut: 2 } as const;

export const urlDefault = "nats://localhost:4222";

/** `nats://user:password@host:4222`, `nats://token@host:4222`, `host:4222`; several with commas between them. */
export function serversOf(url: string): NatsServers {
  const urls = url.split(",").map((each) => parse(each.trim(), url));
  const { username, password } = urls.find((each) => each.username !== "") ?? { username: "", password: "" };
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
  const login = user === "" ? {} : pass === "" ? { token: user } : { user, pass };
  return { servers: urls.map(({ protocol, host }) => `${protocol}//${host}`), login };
}

function parse(text: string, all: string): URL {
  const withScheme = /^[a-z]+:\/\//i.test(text) ? text : `nats://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url !== undefined && url.hostname !== "" && (url.protocol === "nats:" || url.protocol === "tls:")) return url;
  const message = `The NATS server's address is ${JSON.stringify(all)}, expected one such as "${urlDefault}".`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "url" } });
}

/** Names of streams and consumers become parts of subjects. */
export function objectName(field: string, name: string): string {
  if (/^[^\s.*>/\\]+$/.test(name)) return name;
  const expected = "a name without spaces, dots, slashes, * and >";
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${JSON.stringify(name)}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
