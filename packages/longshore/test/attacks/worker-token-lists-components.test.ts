// The attacker holds a worker token and connects many workers to a Stepflow queue, and each lists thousands of different components. The
// server remembered every list, and wrote all of them into one document each time a worker connected.

import { expect, it, onTestFinished } from "vitest";
import { componentsMax } from "../../src/protocols/stepflow/server/config/registered-components.ts";
import { Discoveries } from "../../src/protocols/stepflow/server/queue/discovery.ts";
import { Registrations } from "../../src/protocols/stepflow/server/queue/registrations.ts";
import { openEngine } from "../../src/server/engine.ts";
import { TestClock } from "../../src/testing/clock.ts";

it("all workers together have as many components as one worker may list, and the oldest components are kept", async () => {
  const engine = await openEngine({ directory: null });
  onTestFinished(() => engine.close());
  const registrations = new Registrations(engine.documents, "queue");
  const own = { id: "own", path: "/own" };
  await registrations.tell([own], {});
  for (let at = 0; at < 4; at++) {
    const components = Array.from({ length: componentsMax / 2 }, (_, each) => ({ id: "evil", path: `/${at}-${each}` }));
    await registrations.tell(components, {});
  }
  const known = (await registrations.known()) ?? [];
  expect(known).toHaveLength(componentsMax);
  expect(known).toContainEqual(own);
});

it("the server remembers a limited number of characters of lists, and sends other workers only components that all of them have", async () => {
  const engine = await openEngine({ directory: null });
  onTestFinished(() => engine.close());
  const registrations = new Registrations(engine.documents, "queue");
  const megabyte = [{ id: "evil", path: "/evil", description: "x".repeat(1_000_000) }];
  const workers = Array.from({ length: 20 }, () => ({}));
  for (const worker of workers) await registrations.tell(megabyte, worker);
  expect(workers.filter((worker) => registrations.componentsOf(worker) !== undefined)).toHaveLength(8);
  expect(await registrations.known(workers.at(-1))).toEqual(megabyte);
  for (const worker of workers) registrations.leave(worker);
  await registrations.tell(megabyte, workers[19]);
  expect(registrations.componentsOf(workers[19] as object)).toEqual(megabyte);
});

it("the values in the texts of schemas are counted before any is built", async () => {
  const discoveries = new Discoveries(new TestClock(), () => "1");
  const kept: number[] = [];
  const { id } = discoveries.ask("http://127.0.0.1", 1_000, async (components) => void kept.push(components.length));
  const list = (schema: string, count: number) =>
    Array.from({ length: count }, (_, at) => ({ componentId: `c${at}`, path: "", inputSchema: schema }));
  const answer = (schema: string, count = 1) => discoveries.answer(id, list(schema, count) as never);
  await expect(answer(`[${"[],".repeat(200_000)}1]`)).rejects.toThrow(/at most 131072 values/);
  await expect(answer(`[${"[],".repeat(1_000)}1]`, 100)).rejects.toThrow(/at most 131072 values/);
  await expect(answer(`${"[".repeat(5_000)}${"]".repeat(5_000)}`)).rejects.toThrow(/deeper than 100 levels/);
  expect(kept).toEqual([]);
  await answer('{"type":"object"}', 100);
  expect(kept).toEqual([100]);
});
