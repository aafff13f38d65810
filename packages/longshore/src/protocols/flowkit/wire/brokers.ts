// Parses the addresses of Kafka brokers, and refuses invalid settings.

import { LongshoreError } from "../../../core/errors.ts";

/** @throws LongshoreError LONGSHORE_BAD_CONFIG for an invalid address. */
export function brokersOf(brokers: string | readonly string[]): readonly string[] {
  const list = (typeof brokers === "string" ? brokers.split(",") : brokers)
    .map((broker) => broker.trim())
    .filter((broker) => broker !== "");
  const wrong = list.find((broker) => !/^[^\s/]+:\d{1,5}$/.test(broker));
  if (list.length > 0 && wrong === undefined) return list;
  throw bad("brokers", JSON.stringify(wrong ?? brokers), "addresses such as kafka:9092");
}

export function bad(field: string, value: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${value}, expected ${expected}.`, { detail: { field, expected } });
}
