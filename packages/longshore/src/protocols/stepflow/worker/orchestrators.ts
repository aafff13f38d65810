// The orchestrators that a worker's tasks came from, one channel for each address, kept open: a channel for each call would run out of
// ports, and a channel costs more than the call. And the question where a run has moved to when its orchestrator does not know it any
// more, which any orchestrator can answer.

import type { Clock } from "../../../core/clock.ts";
import { withoutEndSlashes } from "../../../core/text.ts";
import { GrpcCode, GrpcError } from "../../../net/grpc/status.ts";
import type { Decoded, Encodable, Message, Rpc } from "../../../net/protobuf/protobuf.ts";
import { TasksService } from "../wire/services.ts";

/** The part of a channel that is needed here. */
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
  /** Called first to find a run; the orchestrator that the worker pulls from. */
  readonly first?: string;
}

/** A pool serves a handful of orchestrators; those beyond come and go. The Rust SDK keeps as many. */
const channelsMax = 16;
/** How many orchestrators are called to find a run, before the next try of the call that failed. */
const askedMax = 3;
const askTimeoutMs = 5_000;
/** A run that was looked up is not looked up again within this long: every heartbeat of its tasks would. */
const askAgainMs = 1_000;
/** Answers are kept for this many runs; forgetting one only costs a question. */
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
      // Moving it to the end is only worth its price where one may be dropped.
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

  /** Where the run is now, by the orchestrators; undefined when none of those that were called knows. */
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
        // No lease on the run: all of them would answer that. Any other error is that orchestrator's own, and another may know.
        if (error instanceof GrpcError && error.code === GrpcCode.NOT_FOUND) return undefined;
      }
    }
    return undefined;
  }

  /** One that nothing waits for; while there is none they are more for a while, but never more than there are calls. */
  #drop(): void {
    for (const [address, channel] of this.#channels) {
      if (channel.calls > 0) continue;
      this.#channels.delete(address);
      void channel.close();
      return;
    }
  }
}

/** A channel and how many calls are under way on it: closing it would end them. */
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

/** One text for one address: orchestrators write their own with or without a scheme. */
export function addressOf(url: string): string {
  const text = withoutEndSlashes(url.trim());
  return text.toLowerCase().replace(/^(http|grpc|dns):\/\/(\/)?/, "");
}
