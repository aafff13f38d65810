// One PullTasks stream: the server pushes tasks to a worker. The worker has one unclaimed task, or a few while it claims promptly
// (offer-window.ts).
//
// The wire does not say how many tasks a worker runs at once; a busy worker simply does not read. So when a worker with other work leaves a
// task unclaimed, the task is soon offered to other workers. For a while, this worker is assumed to run only as many tasks as it held then.
// A worker without work that leaves tasks unclaimed gets the next one when it has reported on the last one. Until then it gets tasks only
// at growing intervals.

import { setMaxListeners } from "node:events";
import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import type { Workers } from "../../../../engine/board/workers.ts";
import type { GrpcSink } from "../../../../net/grpc/service.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { TaskAssignment } from "../../wire/messages.ts";
import { deliver, type Recipient } from "../queue/courier.ts";
import type { HeldCounts } from "../queue/held-counts.ts";
import type { Delivery, NextOptions, TaskQueue } from "../queue/queue.ts";
import type { UnclaimedOffers } from "../queue/unclaimed-offers.ts";
import { unavailable } from "../refuse.ts";
import { OfferWindow } from "./offer-window.ts";

type Assignment = Encodable<typeof TaskAssignment>;

/** How long a worker that holds nothing may take to claim, because it may be starting up. */
const idleOfferMs = 5_000;
/** How long a worker that holds tasks may take to claim: far longer than a claim takes. After this time it probably has no free slot. */
const busyOfferMs = 1_000;
/** How long an assumption about a worker's capacity is kept. */
const roomMs = 60_000;
/** The longest pause between two offers to a worker that does not claim. */
const restMsMax = 60_000;
/** How long a worker may take to list its components, as in the reference. After that it gets tasks anyway. */
const discoveryMs = 5_000;
/** A waiting worker is marked as active at least this often. */
const signMs = 30_000;

export interface PullDeps {
  readonly clock: Clock;
  readonly held: HeldCounts;
  readonly unclaimed: UnclaimedOffers;
  readonly workers: Pick<Workers, "seen">;
}

export class PullStream {
  readonly #deps: PullDeps;
  readonly #queue: TaskQueue;
  readonly #workerId: string;
  readonly #url: string;
  /** Aborted when the worker has disconnected. */
  readonly #gone: AbortSignal;
  readonly #sink: Pick<GrpcSink<Assignment>, "send">;
  #room: { readonly count: number; readonly until: number } | undefined;
  #misses = 0;
  readonly #ahead = new OfferWindow();
  /** A round lasts until a task stays unclaimed. When its signal aborts, its couriers stop claiming and give their tasks back. */
  #round = new AbortController();
  #couriers = 0;
  /** Tasks that couriers are claiming, or that the worker has not claimed yet. */
  #coming = 0;

  constructor(
    deps: PullDeps,
    stream: { queue: TaskQueue; workerId: string; url: string; gone: AbortSignal; sink: Pick<GrpcSink<Assignment>, "send"> },
  ) {
    this.#deps = deps;
    this.#queue = stream.queue;
    this.#workerId = stream.workerId;
    this.#url = stream.url;
    this.#sink = stream.sink;
    this.#gone = stream.gone;
  }

  /** Resolves when the worker has disconnected. Throws UNAVAILABLE when the server is closing, so that the worker reconnects. */
  async serve(): Promise<void> {
    const question = this.#queue.discover({ orchestratorServiceUrl: this.#url, patienceMs: discoveryMs, worker: this });
    const end = () => {
      question.drop();
      this.#round.abort();
    };
    this.#gone.addEventListener("abort", end, { once: true });
    void question.answered.then((registered) => {
      if (registered) this.#sign(this.#queue.registrations.componentsOf(this)?.map(({ path }) => path));
    });
    try {
      const isKnown = (await this.#queue.registrations.known()) !== null;
      await this.#sink.send(question.assignment);
      // When no worker of the queue has sent a list, the names of the components are not known.
      if (!isKnown) await question.answered;
      await this.#deliverAll();
    } catch (error) {
      if (error instanceof LongshoreError && error.code === "LONGSHORE_SHUTDOWN") throw unavailable("The server is closing.");
      throw error;
    } finally {
      this.#gone.removeEventListener("abort", end);
      end();
      this.#queue.registrations.leave(this);
    }
  }

  /** Each round begins with one courier, which stays until the round ends. */
  async #deliverAll(): Promise<void> {
    while (!this.#gone.aborted) {
      this.#round = new AbortController();
      // Each of the round's few couriers adds a listener.
      setMaxListeners(0, this.#round.signal);
      let unclaimed: Delivery | undefined;
      const lapsed = (delivery: Delivery) => {
        unclaimed ??= delivery;
      };
      await this.#deliver(this.#round, lapsed, { first: true });
      if (unclaimed !== undefined) await this.#afterLapse(unclaimed);
    }
  }

  async #deliver(round: AbortController, lapsed: (delivery: Delivery) => void, { first }: { first: boolean }): Promise<void> {
    const { clock } = this.#deps;
    let comes = false;
    const coming = (now: boolean) => {
      if (comes !== now) this.#coming += now ? 1 : -1;
      comes = now;
    };
    const recipient: Recipient = {
      gone: round.signal,
      leave: (delivery) => (this.#gone.aborted ? delivery.drop() : delivery.giveBack()),
      ready: async () => {
        coming(false);
        while (!round.signal.aborted && !this.#hasRoom()) await this.#change(round.signal);
        if (!first && this.#couriers > this.#ahead.most) return undefined;
        coming(true);
        return this.#options();
      },
      send: (assignment, delivery) => {
        const sentAt = clock.now();
        void delivery.outcome.then((outcome) => {
          coming(false);
          if (outcome === "taken") this.#ahead.claimedAfter(clock.now() - sentAt);
        });
        return this.#sink.send(assignment);
      },
      taken: () => {
        this.#misses = 0;
        // When one of these couriers fails, the first one fails too and reports the error to the worker.
        while (!round.signal.aborted && this.#couriers < this.#ahead.most) this.#deliver(round, lapsed, { first: false }).catch(() => {});
      },
      lapsed: (delivery) => {
        lapsed(delivery);
        round.abort();
      },
    };
    this.#couriers++;
    try {
      await deliver(this.#queue, recipient, clock);
    } finally {
      this.#couriers--;
      coming(false);
    }
  }

  /** False while the worker is assumed to have no free slot. */
  #hasRoom(): boolean {
    const { clock, held } = this.#deps;
    if (this.#room !== undefined && clock.now() >= this.#room.until) {
      // The worker may have more slots than assumed; offering one task at a time will show it.
      this.#room = undefined;
      this.#ahead.lapsed();
    }
    return this.#room === undefined || held.count(this.#workerId) + this.#coming < this.#room.count;
  }

  /** Resolves when the worker has finished a task, or the assumption about its capacity expires. */
  #change(gone: AbortSignal): Promise<void> {
    const { clock, held } = this.#deps;
    const ms = (this.#room?.until ?? 0) - clock.now();
    return this.#rest(ms, gone, (wake) => held.listenFor(this.#workerId, wake));
  }

  #options(): Omit<NextOptions, "signal"> {
    const { held } = this.#deps;
    this.#sign();
    const offerMs = held.count(this.#workerId) > 0 ? busyOfferMs : idleOfferMs;
    return { offerMs, orchestratorServiceUrl: this.#url, worker: this };
  }

  #sign(does?: readonly string[]): void {
    const sign = { protocol: "stepflow", reach: { names: [this.#queue.lane.name], labels: [] }, everyMs: signMs };
    this.#deps.workers.seen(this.#workerId, does === undefined ? sign : { ...sign, does });
  }

  async #afterLapse(delivery: Delivery): Promise<void> {
    const { clock, held, unclaimed } = this.#deps;
    this.#ahead.lapsed();
    const count = held.count(this.#workerId);
    if (count > 0) {
      this.#room = { count, until: clock.now() + roomMs };
      return;
    }
    const restMs = Math.min(idleOfferMs * 2 ** this.#misses++, restMsMax);
    await this.#rest(restMs, this.#gone, (wake) => unclaimed.listenFor(delivery.id, wake));
  }

  /** Resolves when the time is over, `wake` is called, or the signal aborts. */
  #rest(ms: number, gone: AbortSignal, listen: (wake: () => void) => () => void): Promise<void> {
    const { clock } = this.#deps;
    return new Promise((resolve) => {
      const over = () => {
        stopTimer();
        stopListening();
        gone.removeEventListener("abort", over);
        resolve();
      };
      const stopTimer = clock.at(clock.now() + ms, over);
      const stopListening = listen(over);
      gone.addEventListener("abort", over, { once: true });
      if (gone.aborted) over();
    });
  }
}
