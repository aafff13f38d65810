// The orchestrators of a worker's tasks, with one open channel for each address. With a channel for each call, the ports would run out, and
// opening the channel would cost more than the call. This module also finds the new orchestrator of a run when the old one does not know
// the run any more. Any orchestrator can tell which one has it.

import type { Clock } from "../../../core/clock.ts";
import { withoutEndSlashes } from "../../../core/text.ts";
import { GrpcCode, GrpcError } from "../../../net/grpc/status.ts";
import type { Decoded, Encodable, Message, Rpc } from "../../../net/protobuf/protobuf.ts";
import { TasksService } from "../wire/services.ts";

/** The part of a channel that is used here. */
export interface Channel {
  unary<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options: CallOptions,
  ): Promise<Decoded<Response>>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs: number;
}

export interface OrchestratorsOptions {
  readonly clock: Clock;
  readonly open: (address: string) => Channel;
  /** The orchestrator that is called first to find a run: the one that the worker pulls from. */
  readonly first?: string;
}

/** Maximum number of channels, as in the Rust SDK; further ones are closed. A worker usually has only a few orchestrators. */
const channelsMax = 16;
/** How many orchestrators are asked about a run before the failed call is tried again. */
const askedMax = 3;
const askTimeoutMs = 5_000;
/** A run is not looked up again within this time; otherwise every heartbeat of its tasks would look it up. */
const askAgainMs = 1_000;
/** Number of runs whose location is kept. Forgetting one only costs another lookup. */
const locatedMax = 1_000;

interface Located {
  readonly atMs: number;
  readonly where: Promise<string | undefined>;
}

export class Orchestrators {
  readonly #options: OrchestratorsOptions;
  /** In the order of last use. */
  readonly #channels = new Map<string, Kept>();
  readonly #located = new Map<string, Located>();

  constructor(options: OrchestratorsOptions) {
    this.#options = options;
  }

  at(url: string): Channel {
    const address = addressOf(url);
    const open = this.#channels.get(address);
    if (open !== undefined) {
      // Moving an entry to the end matters only when another one could be dropped.
      if (this.#channels.size > 1) {
        this.#channels.delete(address);
        this.#channels.set(address, open);
      }
      return open;
    }
    const channel = new Kept(this.#options.open(address));
    if (this.#channels.size >= channelsMax) this.#drop();
    this.#channels.set(address, channel);
    return channel;
  }

  /** The run's current orchestrator, or undefined when none of the called orchestrators knows it. */
  locate(runId: string, from: string): Promise<string | undefined> {
    const now = this.#options.clock.now();
    const located = this.#located.get(runId);
    if (located !== undefined && now - located.atMs < askAgainMs) return located.where;
    const where = this.#ask(runId, from);
    this.#located.delete(runId);
    this.#located.set(runId, { atMs: now, where });
    if (this.#located.size > locatedMax) this.#located.delete(this.#located.keys().next().value as string);
    return where;
  }

  async close(): Promise<void> {
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    await Promise.all(channels.map((channel) => channel.close()));
  }

  async #ask(runId: string, from: string): Promise<string | undefined> {
    const { first } = this.#options;
    const recent = [...this.#channels.keys()].reverse();
    const candidates = [...new Set([...(first === undefined ? [] : [addressOf(first)]), addressOf(from), ...recent])];
    for (const address of candidates.slice(0, askedMax)) {
      try {
        const answer = await this.at(address).unary(TasksService.GetOrchestratorForRun, { runId }, { timeoutMs: askTimeoutMs });
        return answer.orchestratorServiceUrl === "" ? undefined : answer.orchestratorServiceUrl;
      } catch (error) {
        // NOT_FOUND means that no orchestrator has a lease on the run, so all would give the same reply. For any other error, another
        // orchestrator may know the run.
        if (error instanceof GrpcError && error.code === GrpcCode.NOT_FOUND) return undefined;
      }
    }
    return undefined;
  }

  /** Drops a channel without calls. If all have calls, there are more channels for a while, but never more than calls. */
  #drop(): void {
    for (const [address, channel] of this.#channels) {
      if (channel.calls > 0) continue;
      this.#channels.delete(address);
      void channel.close();
      return;
    }
  }
}

/** A channel with the number of its calls: closing it would end them. */
class Kept implements Channel {
  calls = 0;
  readonly #channel: Channel;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  async unary<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options: CallOptions,
  ): Promise<Decoded<Response>> {
    this.calls++;
    try {
      return await this.#channel.unary(rpc, request, options);
    } finally {
      this.calls--;
    }
  }

  close(): Promise<void> {
    return this.#channel.close();
  }
}

/** The normal form of an address: orchestrators write theirs with or without a scheme. */
export function addressOf(url: string): string {
  const text = withoutEndSlashes(url.trim());
  return text.toLowerCase().replace(/^(http|grpc|dns):\/\/(\/)?/, "");
}
