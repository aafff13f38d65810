// The protocols of the registry, as the commands need them.

import { LongshoreError } from "../core/errors.ts";
import type { ReadAddress } from "../core/recording.ts";
import type { HintOptions, ProtocolHints } from "../protocols/hints.ts";
import { protocols } from "../protocols/index.ts";
import type { WorkerProtocol } from "../protocols/worker-half.ts";
import type { TelemetryVariables } from "../runner/telemetry.ts";

/** Every way in which `longshore work` gets tasks. */
export const workerProtocols: readonly WorkerProtocol[] = protocols.flatMap(({ workers = [] }) => workers);

/** Their variables for traces and logs. */
export const telemetryVariables: readonly TelemetryVariables[] = workerProtocols.flatMap(({ telemetry }) => telemetry ?? []);

/** How they write the ids of tasks. */
export const recordedAddresses: readonly ReadAddress[] = protocols.flatMap(({ recordedAddress }) => recordedAddress ?? []);

/** By its name; without one, the protocol that takes the address of `--on`. */
export function workerProtocol(name?: string): WorkerProtocol {
  const found = workerProtocols.find((one) => (name === undefined ? one.chosen.byAddress : one.name === name));
  if (found !== undefined) return found;
  const known = workerProtocols.map((one) => one.name).join(", ");
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `No protocol ${name === undefined ? "takes an address" : `is called ${name}`}, expected one of ${known}.`,
  );
}

/** What `longshore dev` prints about workers, one entry for each protocol that has something to print. */
export function protocolHints(options: HintOptions): Promise<ProtocolHints[]> {
  return Promise.all(protocols.flatMap(({ hints }) => (hints === undefined ? [] : [hints(options)])));
}
