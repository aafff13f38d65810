// Under which address workers reach this server: `host:port` without a scheme, as the reference's workers take it.

import { LongshoreError } from "../../errors.ts";

/** A scheme in front and a path behind are taken, and left out. */
const shape = /^(?:(?:https?|grpc):\/\/)?((?:\[[0-9a-fA-F:.]+\]|[^\s/:@[\]]+)(?::\d{1,5})?)\/*$/;

/** @throws LongshoreError LONGSHORE_BAD_CONFIG that names where the text was found. */
export function parseAddress(text: string, where: string): string {
  const address = addressIn(text);
  if (address !== undefined) return address;
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
  return { forCaller: (authority) => told ?? (authority === undefined ? undefined : addressIn(authority)) ?? listensAt() };
}

function addressIn(text: string): string | undefined {
  return shape.exec(text.trim())?.[1];
}
