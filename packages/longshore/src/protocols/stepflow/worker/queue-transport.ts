// The transport of workers over gRPC and over NATS. They differ only in their source of assignments (`QueueSource`).

import type { Clock } from "../../../core/clock.ts";
import { openChannel } from "../../../net/grpc/client.ts";
import type { Capabilities, ReportTries, Transport, TransportHost } from "../../../runner/transport.ts";
import type { QueueSettings } from "./queue-options.ts";
import { type OpenChannel, QueueWorker } from "./queue-worker.ts";

/** Progress is sent with heartbeats. The wire has no field for log lines. */
const capabilities: Capabilities = { defer: false, progress: true, streams: false, logs: false, blobs: true, cancel: true };
/**
 * How long a report is retried, before the slot is released. An orchestrator restarts or is replaced in less time. (The reference uses 88
 * s.)
 */
const reportTries: ReportTries = { patienceMs: 120_000 };

export interface QueueSource {
  /** For logs and `status()`. */
  readonly name: string;
  readonly settings: QueueSettings;
  /** The orchestrator for tasks that name none. */
  readonly orchestratorUrl: string | undefined;
  /** Whether the token is sent to this orchestrator. Default: always. A program that can write to the source can name any orchestrator. */
  trusts?(address: string): boolean;
  /** Loads optional packages. Rejects when the configuration is wrong. */
  prepare?(): Promise<void>;
  /** Passes assignments to the worker until it drains. Never rejects. */
  receive(host: TransportHost, worker: QueueWorker, open: OpenChannel): Promise<void>;
  close(): Promise<void>;
}

export function queueTransport(source: QueueSource): Transport {
  const { settings, orchestratorUrl } = source;
  const { slots, drainMs } = settings;
  let worker: QueueWorker | undefined;
  let receiving: Promise<void> = Promise.resolve();
  return {
    name: source.name,
    capabilities,
    reportTries,
    ...(drainMs === undefined ? {} : { drainMs }),
    ...(slots === undefined ? {} : { slotsFor: () => slots }),
    async start(host) {
      await source.prepare?.();
      const trusts = (address: string) => source.trusts?.(address) ?? true;
      const open = channelOpener(settings, host.clock, (address) => {
        if (trusts(address)) return true;
        const message = `A task of ${source.name} names the orchestrator ${address}. It gets no token: the token is only for ${orchestratorUrl}.`;
        host.notice({ level: "warn", message });
        return false;
      });
      worker = new QueueWorker({ settings, host, open, orchestratorUrl, trusts });
      receiving = source.receive(host, worker, open);
    },
    async drain() {
      await receiving;
      await worker?.idle();
    },
    async stop() {
      await source.close();
      await worker?.close();
    },
  };
}

/** Opens channels to orchestrators with the worker's options. The token is sent where `trusts` allows it. */
export function channelOpener({ token, tls }: QueueSettings, clock: Clock, trusts: (address: string) => boolean): OpenChannel {
  const channelOptions = { clock, ...(tls === undefined ? {} : { tls }) };
  const metadata: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return (address, options = {}) => openChannel(address, { ...channelOptions, metadata: trusts(address) ? metadata : {}, ...options });
}
