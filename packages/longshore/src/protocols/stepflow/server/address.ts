// The address under which workers reach this server: `host:port` without a scheme, as the reference's workers expect it. It begins with
// `https://` only when the server uses TLS, which the reference does not support.

import { LongshoreError } from "../../../core/errors.ts";
import { isLoopback } from "../../../core/loopback.ts";

const shape = /^(?:(https?|grpcs?):\/\/)?((?:\[[0-9a-fA-F:.]+\]|[^\s/:@[\]]+)(?::\d{1,5})?)\/*$/;
const secureSchemes = ["https", "grpcs"];

/** @throws LongshoreError LONGSHORE_BAD_CONFIG that names the source of the text. */
export function parseAddress(text: string, where: string): string {
  const [, scheme = "", address] = shape.exec(text.trim()) ?? [];
  if (address !== undefined) return written(address, secureSchemes.includes(scheme));
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${where} is ${JSON.stringify(text)}, expected an address such as 10.0.0.7:7837.`);
}

export interface Addresses {
  /** The address for a worker that called this authority. Without an authority: for a worker that did not call, such as one over NATS. */
  forCaller(authority?: string): string;
}

/**
 * `configured` is the operator's setting. Without it, a worker gets the address that it called, because this address works. A worker that
 * did not call gets the address where the server listens.
 */
export function addressesOf(configured: string | undefined, listensAt: () => string): Addresses {
  return {
    forCaller(authority) {
      if (configured !== undefined) return configured;
      const [, , address] = authority === undefined ? [] : (shape.exec(authority) ?? []);
      return address === undefined ? listensAt() : written(address, listensAt().startsWith("https://"));
    },
  };
}

/** True when only programs on this machine can use the address. */
export function isOnLoopback(address: string): boolean {
  const [, host = ""] = /^(?:[a-z]+:\/\/)?(?:[^@/]*@)?(\[[^\]]*\]|[^:/]*)/i.exec(address) ?? [];
  return isLoopback(host);
}

function written(address: string, secure: boolean): string {
  return secure ? `https://${address}` : address;
}
