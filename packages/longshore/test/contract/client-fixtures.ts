// What the suites of clients use: a server with a client, and some workflows.

import type { Client } from "../../src/client/client.ts";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import type { Ref } from "../../src/reference.ts";
import type { TransportSource } from "../../src/runner/transport.ts";
import type { TestClock } from "../../src/testing/clock.ts";
import { workflow } from "../../src/workflow.ts";

export interface OpenClient {
  readonly client: Client;
  /** The server that a worker connects to. */
  readonly on: TransportSource;
  readonly clock: TestClock;
  close(): Promise<void>;
}

export const double = task("double", async (n: number) => 2 * n);
export const refuse = task("refuse", async (): Promise<never> => {
  throw new Error("not today");
});
export const doubling = graph("doubling", (g, input: Ref<{ n: number }>) => ({ twice: g.step(double, input.n) }));
export const failing = graph("failing", (g) => g.step(refuse, null));
export const idle = graph("idle", (g, input: unknown) =>
  g.step(
    task("nobody", async (given: unknown) => given),
    input,
  ),
);
export const approval = workflow("approval", async (w) => w.signal("approve"));

export interface ClientSetups {
  /** Opens a fresh server; it is closed after the test. */
  setup(): Promise<OpenClient>;
  /** The same, with a worker for the tasks and the workflow of this file. */
  withWorker(): Promise<OpenClient>;
  /** What is closed after the test, in reverse order. */
  readonly opened: { close(): Promise<unknown> }[];
}

export async function all<Item>(list: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of list) items.push(item);
  return items;
}
