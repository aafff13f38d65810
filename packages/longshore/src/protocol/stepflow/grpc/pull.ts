// One PullTasks stream: a worker that is pushed tasks as they come. At most one lies with it unclaimed.
//
// Nothing on the wire tells how many tasks a worker runs at once; a busy one simply does not read. So a task that a worker with other work
// leaves unclaimed goes on to others soon, and from then on, for a while, the worker is taken to run as many as it held then. A worker
// without any work that leaves tasks unclaimed is offered another when it has spoken of the last, and less and less often until then: each
// would lie in its stream, to be read and thrown away.

import type { Workers } from "../../../board/workers.ts";
import type { Clock } from "../../../clock.ts";
import { LongshoreError } from "../../../errors.ts";
import type { GrpcSink } from "../../../grpc/service.ts";
import type { Encodable } from "../../../protobuf.ts";
import type { TaskAssignment } from "../messages.ts";
import { deliver, type Recipient } from "../queue/courier.ts";
import type { Held } from "../queue/held.ts";
import type { Delivery, NextOptions, TaskQueue } from "../queue/queue.ts";
import type { Unclaimed } from "../queue/unclaimed.ts";
import { unavailable } from "../refuse.ts";

type Assignment = Encodable<typeof TaskAssignment>;

/** How long a worker that holds nothing may take to claim: it may be starting up. */
const idleOfferMs = 5_000;
/** One that holds something most likely has no room. Far above what a claim takes, even across continents. */
const busyOfferMs = 1_000;
/** How long what was learnt about a worker's room is believed. */
const roomMs = 60_000;
/** The longest pause between two tasks for a worker that does not claim. */
const restMsMax = 60_000;
/** How long a worker may take to say what it can do, as in the reference, before it is given tasks all the same. */
const discoveryMs = 5_000;
/** A worker that waits is heard of this often, or more often. */
const signMs = 30_000;

export interface PullParts {
  readonly clock: Clock;
  readonly held: Held;
  readonly unclaimed: Unclaimed;
  readonly workers: Pick<Workers, "seen">;
}

export class PullStream implements Recipient {
  readonly gone: AbortSignal;
  readonly #parts: PullParts;
  readonly #queue: TaskQueue;
  readonly #workerId: string;
  readonly #url: string;
  readonly #sink: Pick<GrpcSink<Assignment>, "send">;
  #room: { count: number; until: number } | undefined;
  #misses = 0;

  constructor(
    parts: PullParts,
    stream: { queue: TaskQueue; workerId: string; url: string; gone: AbortSignal; sink: Pick<GrpcSink<Assignment>, "send"> },
  ) {
    this.#parts = parts;
    this.#queue = stream.queue;
    this.#workerId = stream.workerId;
    this.#url = stream.url;
    this.#sink = stream.sink;
    this.gone = stream.gone;
  }

  /** Resolves when the worker has gone. Throws UNAVAILABLE when the server is closing: the worker is to come back. */
  async serve(): Promise<void> {
    const { clock } = this.#parts;
    const question = this.#queue.discover({ orchestratorServiceUrl: this.#url, patienceMs: discoveryMs, worker: this });
    this.gone.addEventListener("abort", question.drop, { once: true });
    try {
      const isKnown = (await this.#queue.registrations.known()) !== null;
      await this.#sink.send(question.assignment);
      // Without a word from any worker of the queue, components would have to be called by names that it may not have.
      if (!isKnown) await question.answered;
      await deliver(this.#queue, this, clock);
    } catch (error) {
      if (error instanceof LongshoreError && error.code === "LONGSHORE_SHUTDOWN") throw unavailable("The server is closing.");
      throw error;
    } finally {
      this.gone.removeEventListener("abort", question.drop);
      question.drop();
      this.#queue.registrations.leave(this);
    }
  }

  async ready(): Promise<Omit<NextOptions, "signal">> {
    const { clock, held, workers } = this.#parts;
    for (let room = this.#room; room !== undefined && held.count(this.#workerId) >= room.count; room = this.#room) {
      if (this.gone.aborted || clock.now() >= room.until) break;
      await this.#rest(room.until - clock.now(), (wake) => held.listenFor(this.#workerId, wake));
    }
    workers.seen(this.#workerId, { protocol: "stepflow", reach: { names: [this.#queue.lane.name], labels: [] }, everyMs: signMs });
    const offerMs = held.count(this.#workerId) > 0 ? busyOfferMs : idleOfferMs;
    return { offerMs, orchestratorServiceUrl: this.#url, worker: this };
  }

  send(assignment: Assignment): Promise<void> {
    return this.#sink.send(assignment);
  }

  taken(): void {
    this.#misses = 0;
  }

  async lapsed(delivery: Delivery): Promise<void> {
    const { clock, held, unclaimed } = this.#parts;
    const count = held.count(this.#workerId);
    if (count > 0) {
      this.#room = { count, until: clock.now() + roomMs };
      return;
    }
    const restMs = Math.min(idleOfferMs * 2 ** this.#misses++, restMsMax);
    await this.#rest(restMs, (wake) => unclaimed.listenFor(delivery.id, wake));
  }

  /** Until the time is over, somebody calls `wake`, or the worker has gone. */
  #rest(ms: number, listen: (wake: () => void) => () => void): Promise<void> {
    const { clock } = this.#parts;
    return new Promise((resolve) => {
      const over = () => {
        stopTimer();
        stopListening();
        this.gone.removeEventListener("abort", over);
        resolve();
      };
      const stopTimer = clock.at(clock.now() + ms, over);
      const stopListening = listen(over);
      this.gone.addEventListener("abort", over, { once: true });
      if (this.gone.aborted) over();
    });
  }
}
