// The protocols of the registry, as the commands need them.

import { LongshoreError } from "../core/errors.ts";
import type { ReadAddress } from "../core/recording.ts";
import type { HintOptions, ProtocolHints } from "../protocols/hints.ts";
import { protocols } from "../protocols/index.ts";
import type { WorkerProtocol } from "../protocols/worker-half.ts";
import type { TelemetryVariables } from "../runner/telemetry.ts";

/** Every protocol from which `longshore work` can get tasks. */
export const workerProtocols: readonly WorkerProtocol[] = protocols.flatMap(({ workers = [] }) => workers);

/** The protocols' environment variables for traces and logs. */
export const telemetryVariables: readonly TelemetryVariables[] = workerProtocols.flatMap(({ telemetry }) => telemetry ?? []);

/** The readers of the protocols' task ids. */
export const recordedAddresses: readonly ReadAddress[] = protocols.flatMap(({ recordedAddress }) => recordedAddress ?? []);

/** Finds a protocol by its name; without a name, the protocol that uses the address of `--on`. */
export function workerProtocol(name?: string): WorkerProtocol {
  const found = workerProtocols.find((one) => (name === undefined ? one.chosen.byAddress : one.name === name));
  if (found !== undefined) return found;
  const known = workerProtocols.map((one) => one.name).join(", ");
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `No protocol ${name === undefined ? "takes an address" : `is called ${name}`}, expected one of ${known}.`,
  );
}

/** The hints that `longshore dev` prints about workers, one entry for each protocol that has hints. */
export function protocolHints(options: HintOptions): Promise<ProtocolHints[]> {
  return Promise.all(protocols.flatMap(({ hints }) => (hints === undefined ? [] : [hints(options)])));
}
