// A queue's tasks on a real NATS server. A worker takes them from there as the reference's does: one message at a time, acknowledged when
// it is received.

import { type Consumer, jetstream } from "@nats-io/jetstream";
import { onTestFinished } from "vitest";
import { addressesOf } from "../../src/protocols/stepflow/server/address.ts";
import { NatsDispatcher, type NatsDispatcherOptions } from "../../src/protocols/stepflow/server/nats/dispatcher.ts";
import type { TaskQueue } from "../../src/protocols/stepflow/server/queue/queue.ts";
import { TaskAssignment } from "../../src/protocols/stepflow/wire/messages.ts";
import type { TestNats } from "./nats.ts";
import type { QueueWorld } from "./stepflow-queue.ts";
import { until } from "./until.ts";

const consumer = "stepflow-default";

export interface Dispatching {
  readonly dispatcher: NatsDispatcher;
  /** The operations that have failed, and whether they still fail. */
  readonly troubles: Map<string, boolean>;
}

export async function dispatch(world: QueueWorld, url: string, more: Partial<NatsDispatcherOptions> = {}): Promise<Dispatching> {
  const troubles = new Map<string, boolean>();
  const queues = ["python", "gpu"].map((name) => world.queues.find(name)?.queue as TaskQueue);
  const dispatcher = new NatsDispatcher({
    clock: world.clock,
    plugin: { name: "nats", url, consumer },
    queues,
    addresses: addressesOf(undefined, () => world.grpc.target),
    trouble: {
      failing: (what) => troubles.set(what, true),
      working: (what) => troubles.has(what) && troubles.set(what, false),
    },
    ...more,
  });
  onTestFinished(() => dispatcher.stop());
  await dispatcher.start();
  return { dispatcher, troubles };
}

export class NatsConsumer {
  readonly #received: TaskAssignment[] = [];
  #closed = false;
  #reading: { close(): Promise<unknown> } | undefined;

  static async open(nats: TestNats, stream: string): Promise<NatsConsumer> {
    const worker = new NatsConsumer();
    const connection = await nats.connection();
    let found: Consumer | undefined;
    // Streams and consumers are made by the server, at its start.
    while (found === undefined) {
      found = await jetstream(connection)
        .consumers.get(stream, consumer)
        .catch(() => undefined);
      if (found === undefined) await new Promise((resolve) => setImmediate(resolve));
    }
    void worker.#read(found);
    onTestFinished(() => worker.leave());
    return worker;
  }

  waiting(): number {
    return this.#received.filter(({ execute }) => execute !== undefined).length;
  }

  /** The next task. Requests for the list of components are skipped. */
  async next(): Promise<TaskAssignment> {
    for (;;) {
      const found = await this.nextOfAny();
      if (found.execute !== undefined) return found;
    }
  }

  async nextOfAny(): Promise<TaskAssignment> {
    await until(() => this.#received.length > 0);
    return this.#received.shift() as TaskAssignment;
  }

  /** Takes nothing more. */
  async leave(): Promise<void> {
    this.#closed = true;
    await this.#reading?.close();
  }

  async #read(from: Consumer): Promise<void> {
    while (!this.#closed) {
      try {
        const messages = await from.fetch({ max_messages: 1, expires: 1_000 });
        this.#reading = messages;
        if (this.#closed) await messages.close();
        for await (const message of messages) {
          message.ack();
          this.#received.push(TaskAssignment.decode(message.data));
        }
      } catch {
        // The connection is closed with the test, or the server is down for a while. What comes is requested again.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }
}
