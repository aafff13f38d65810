// The address of a channel: `host:port`, which peers usually write, or a URL, whose scheme decides whether TLS is used.
import { LongshoreError } from "../../core/errors.ts";

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** The `:authority` of calls, and the name of the server in messages. */
  readonly authority: string;
}

/** @throws LongshoreError LONGSHORE_BAD_CONFIG for anything else. */
export function parseTarget(text: string): Target {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(withScheme)) throw badTarget(text);
  const url = new URL(withScheme);
  const plain = url.username === "" && url.password === "" && url.search === "" && url.hash === "" && url.pathname === "/";
  if ((url.protocol !== "http:" && url.protocol !== "https:") || !plain || url.hostname === "") throw badTarget(text);
  const secure = url.protocol === "https:";
  // URL drops the default port of its scheme, and a target without a scheme has no default port.
  const portText = /:(\d+)\/?$/.exec(withScheme)?.[1];
  if (portText === undefined && withScheme !== text) throw badTarget(text);
  const port = portText === undefined ? (secure ? 443 : 80) : Number(portText);
  if (port < 1 || port > 65_535) throw badTarget(text);
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port, secure, authority: `${url.hostname}:${port}` };
}

function badTarget(text: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${JSON.stringify(text)} is not an address of a gRPC server.`, {
    detail: { expected: "HOST:PORT, http://HOST:PORT or https://HOST:PORT" },
  });
}
