// Publishes the tasks of queues to JetStream. A queue has the stream `<STREAM>` with the one subject `<STREAM>.tasks`, and its workers take
// the tasks through a shared durable consumer. The stream only carries tasks: the board is authoritative. When no worker claims a task in
// time, it is published again under another id. Several orchestrators may publish to one stream: each task names its orchestrator, and the
// worker reports there.

import type { Clock } from "../../../../core/clock.ts";
import { pause } from "../../../../core/clock.ts";
import type { FailureListener } from "../../../../core/failure-listener.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import { TaskAssignment } from "../../wire/messages.ts";
import { loadNats, type NatsClient } from "../../wire/nats/client.ts";
import type { Addresses } from "../address.ts";
import type { NatsPlugin } from "../config/config.ts";
import { deliver } from "../queue/courier.ts";
import type { Delivery, TaskQueue } from "../queue/queue.ts";
import { NatsServerConnection } from "./connection.ts";

export interface NatsDispatcherOptions {
  readonly clock: Clock;
  readonly plugin: Pick<NatsPlugin, "name" | "url" | "consumer">;
  /** The queues. Each has the name of its stream. */
  readonly queues: readonly TaskQueue[];
  readonly addresses: Addresses;
  readonly trouble: FailureListener;
  /** Replaced in tests. */
  readonly load?: () => Promise<NatsClient>;
}

/**
 * Maximum number of unclaimed messages of one queue. More of them would only wait in the stream, which has no priorities, instead of on the
 * board.
 */
const unclaimedMax = 32;
/** How long a message may stay unclaimed before it is published again. Three such times fit into the reference's queue timeout. */
const offerMs = 10_000;
/** The same for a discovery message. */
const discoveryMs = 10_000;
/** How often discovery is repeated: a new release of the workers may have other components, and workers do not announce themselves. */
const refreshMs = 300_000;
/** After this many discovery messages that were read but not answered, the workers get tasks anyway. */
const unansweredMax = 2;

export class NatsDispatcher {
  readonly #options: NatsDispatcherOptions;
  readonly #stopping = new AbortController();
  /** One signal for each courier, so that listeners do not accumulate on one. */
  readonly #couriers = new Set<AbortController>();
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: NatsDispatcherOptions) {
    this.#options = options;
  }

  /** Rejects when the NATS client is not installed. Retries while the NATS server cannot be reached. */
  async start(): Promise<void> {
    const { plugin, queues, clock, trouble, load } = this.#options;
    const streams = queues.map(({ name }) => name);
    const client = await loadNats(load);
    const link = new NatsServerConnection({ client, url: plugin.url, consumer: plugin.consumer, streams, clock, trouble });
    this.#running = Promise.all([link.run(this.#stopping.signal), ...queues.map((queue) => this.#serve(queue, link))]);
  }

  /** Published messages that are not claimed stay in their stream: a worker may claim them until the offer ends. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const courier of this.#couriers) courier.abort();
    await this.#running;
  }

  async #serve(queue: TaskQueue, link: NatsServerConnection): Promise<void> {
    const gone = this.#stopping.signal;
    const queried = await this.#askUntilKnown(queue, link);
    const couriers = Array.from({ length: gone.aborted ? 0 : unclaimedMax }, () => this.#carry(queue, link));
    await Promise.all([...couriers, this.#askAgain(queue, link, queried)]);
  }

  async #carry(queue: TaskQueue, link: NatsServerConnection): Promise<void> {
    const { addresses, clock } = this.#options;
    const gone = new AbortController();
    this.#couriers.add(gone);
    let sequence: number | undefined;
    const recipient = {
      gone: gone.signal,
      ready: () => ({ offerMs, orchestratorServiceUrl: addresses.forCaller() }),
      send: async (assignment: Encodable<typeof TaskAssignment>, delivery: Delivery) => {
        sequence = await this.#publish(queue, link, assignment, delivery, gone.signal);
      },
      lapsed: async () => {
        // A worker that takes the message from the stream now could not claim it.
        if (sequence !== undefined) await link.remove(queue.name, sequence);
      },
      leave: (delivery: Delivery) => delivery.leave(),
    };
    // The claim rejects when the server is closing, which has the same effect as `stop`.
    await deliver(queue, recipient, clock).catch(() => {});
  }

  /** Resolves when the message is in the stream or not needed any more. */
  async #publish(
    queue: TaskQueue,
    link: NatsServerConnection,
    assignment: Encodable<typeof TaskAssignment>,
    delivery: Delivery,
    gone: AbortSignal,
  ): Promise<number | undefined> {
    const bytes = TaskAssignment.encode(assignment);
    const over = new AbortController();
    const end = () => over.abort();
    void delivery.outcome.then(end);
    gone.addEventListener("abort", end, { once: true });
    try {
      const published = await link.publish(queue.name, bytes, delivery.id, over.signal);
      if (published.kind === "stored") return published.sequence;
      if (published.kind === "too-large") await delivery.refuse(tooLarge(bytes.length, published.bytesMax));
      return undefined;
    } finally {
      gone.removeEventListener("abort", end);
    }
  }

  /**
   * Waits until the queue's components are known: they must be called by the names that workers gave them. Without a connected worker, none
   * could run them either. Returns false when the components were already known.
   */
  async #askUntilKnown(queue: TaskQueue, link: NatsServerConnection): Promise<boolean> {
    let unanswered = 0;
    let queried = false;
    while (!this.#stopping.signal.aborted && (await queue.registrations.known()) === null && unanswered < unansweredMax) {
      queried = true;
      if ((await this.#ask(queue, link)) === "read") unanswered++;
    }
    return queried;
  }

  async #askAgain(queue: TaskQueue, link: NatsServerConnection, lately: boolean): Promise<void> {
    const gone = this.#stopping.signal;
    for (let wait = lately; !gone.aborted; wait = true) {
      if (wait) await pause(this.#options.clock, refreshMs, gone);
      if (!gone.aborted) await this.#ask(queue, link);
    }
  }

  /** `read`: a worker took the message but did not answer. */
  async #ask(queue: TaskQueue, link: NatsServerConnection): Promise<"answered" | "read" | "unread"> {
    const gone = this.#stopping.signal;
    const question = queue.discover({ orchestratorServiceUrl: this.#options.addresses.forCaller(), patienceMs: discoveryMs });
    gone.addEventListener("abort", question.drop, { once: true });
    try {
      const published = await link.publish(queue.name, TaskAssignment.encode(question.assignment), question.id, gone);
      if (await question.answered) return "answered";
      if (published.kind !== "stored" || gone.aborted) return "unread";
      return (await link.remove(queue.name, published.sequence)) ? "unread" : "read";
    } finally {
      gone.removeEventListener("abort", question.drop);
      question.drop();
    }
  }
}

function tooLarge(bytes: number, bytesMax: number) {
  const message = `the assignment has ${bytes} bytes, and the NATS server takes ${bytesMax}: keep large inputs as blobs, or raise max_payload`;
  return { code: "INVALID_INPUT" as const, message };
}
