// Under which address workers reach this server: `host:port` without a scheme, as the reference's workers take it. Only where the server
// speaks TLS, which those do not know, `https://` stands in front.

import { LongshoreError } from "../../../errors.ts";
import { isLoopback } from "../../../loopback.ts";

const shape = /^(?:(https?|grpcs?):\/\/)?((?:\[[0-9a-fA-F:.]+\]|[^\s/:@[\]]+)(?::\d{1,5})?)\/*$/;
const secureSchemes = ["https", "grpcs"];

/** @throws LongshoreError LONGSHORE_BAD_CONFIG that names where the text was found. */
export function parseAddress(text: string, where: string): string {
  const [, scheme = "", address] = shape.exec(text.trim()) ?? [];
  if (address !== undefined) return written(address, secureSchemes.includes(scheme));
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${where} is ${JSON.stringify(text)}, expected an address such as 10.0.0.7:7837.`);
}

export interface Addresses {
  /** What a worker is told that came by a call to this authority; without one, by another way than a call. */
  forCaller(authority?: string): string;
}

/**
 * `told` is what the operator says. Else a worker is told the address that it has used itself: it has proved to work. Whoever did not come
 * by a call is told where the server listens.
 */
export function addressesOf(told: string | undefined, listensAt: () => string): Addresses {
  return {
    forCaller(authority) {
      if (told !== undefined) return told;
      const [, , address] = authority === undefined ? [] : (shape.exec(authority) ?? []);
      return address === undefined ? listensAt() : written(address, listensAt().startsWith("https://"));
    },
  };
}

/** Only whoever is on this machine can use it. */
export function isOnLoopback(address: string): boolean {
  const [, host = ""] = /^(?:[a-z]+:\/\/)?(?:[^@/]*@)?(\[[^\]]*\]|[^:/]*)/i.exec(address) ?? [];
  return isLoopback(host);
}

function written(address: string, secure: boolean): string {
  return secure ? `https://${address}` : address;
}
