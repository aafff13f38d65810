// Loads the NATS client, an optional package.

import { LongshoreError } from "../../../../core/errors.ts";

export type NatsTransport = typeof import("@nats-io/transport-node");
export type JetStream = typeof import("@nats-io/jetstream");
export type NatsConnection = Awaited<ReturnType<NatsTransport["connect"]>>;
export type NatsMessage = Parameters<NonNullable<NonNullable<Parameters<NatsConnection["subscribe"]>[1]>["callback"]>>[1];

export interface NatsClient {
  readonly transport: NatsTransport;
  readonly jetstream: JetStream;
}

const install = "npm install @nats-io/transport-node @nats-io/jetstream";

/** Tests replace `load`. Rejects with LONGSHORE_BAD_CONFIG when the package is not installed. */
export async function loadNats(load: () => Promise<NatsClient> = loadPackages): Promise<NatsClient> {
  try {
    return await load();
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    const message = `NATS needs the packages @nats-io/transport-node and @nats-io/jetstream: ${install}`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause: error });
  }
}

async function loadPackages(): Promise<NatsClient> {
  const [transport, jetstream] = await Promise.all([import("@nats-io/transport-node"), import("@nats-io/jetstream")]);
  return { transport, jetstream };
}
