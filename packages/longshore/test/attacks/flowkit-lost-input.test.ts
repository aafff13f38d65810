// Silent loss with workers of the reference on Kafka and MongoDB. MongoDB refuses the way in which they store parts, so the coordinator
// writes the parts later. But the worker marks its node as complete at once. A reader that sees the mark first misses the later parts: 264 of
// 1,200 items were lost, and the run finished. This test plays such workers; packages/conformance uses the unchanged ones.

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/core/json/json.ts";
import type { ForeignResults } from "../../src/protocols/flowkit/server/coordinator/foreign-results.ts";
import { dedupIds } from "../../src/protocols/flowkit/wire/hash.ts";
import { node, pulls } from "../support/flowkit-graphs.ts";
import { type Command, openFlowkit, type ScriptedWorker } from "../support/flowkit-world.ts";
import { deferred, until } from "../support/until.ts";

/**
 * A coordinator with workers of the reference. MongoDB has `complete` as the result of the reader, and `sourceComplete` as the result of its
 * source.
 */
async function setup(more: Partial<ForeignResults> = {}) {
  const state = { complete: null as JsonObject | null, sourceComplete: null as JsonObject | null, reopened: 0 };
  const results = {
    completed: async ({ node_id }: { node_id: string }) => (node_id === "d" ? state.complete : state.sourceComplete),
    adopt: async () => {},
    release: async () => {},
    reopen: async () => {
      state.complete = null;
      state.reopened++;
    },
    ...more,
  };
  const world = await openFlowkit({ results });
  const [maker, reader] = [await world.worker("m", ["make"]), await world.worker("r", ["read"])];
  return { world, maker, reader, state };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `b${at}`);

async function says(worker: ScriptedWorker, command: Command, uids: readonly string[]): Promise<void> {
  for (const uid of uids) await worker.batch(command, uid, { count: 1 });
}

const graph = (io: JsonObject = pulls(["u"])) => ({ nodes: [node("u", "make"), node("d", "read", io)] });

describe("a node that streams from a source", () => {
  it("is not started while the source is complete in MongoDB but its last parts have not arrived", async () => {
    const { world, maker, reader, state } = await setup();
    const run = await world.submit(graph());
    const make = await maker.accept();
    state.sourceComplete = { total: 5 };
    await says(maker, make, names(1));
    await world.inState(run, "d", "queued");
    await world.clock.advance(5_000);
    expect(reader.commands).toHaveLength(0);
    await says(maker, make, names(5));
    await maker.done(make);
    await world.inState(run, "u", "done");
    await world.clock.advance(1_000);
    const read = await reader.accept();
    await says(reader, read, names(5));
    await reader.done(read);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect([reader.commands.length, state.reopened]).toEqual([1, 0]);
  });

  it("is not started before everything that its source has produced is in MongoDB", async () => {
    const asked: string[] = [];
    const written = deferred<void>();
    const caughtUp = (task: string) => {
      asked.push(task);
      return written.promise;
    };
    const { world, maker, reader } = await setup({ caughtUp });
    const run = await world.submit(graph(pulls(["u"], "ready")));
    const make = await maker.accept();
    expect(asked).toEqual([]);
    await says(maker, make, names(3));
    await maker.done(make);
    await until(() => asked.length + reader.commands.length > 0);
    await world.clock.advance(1_000);
    expect(reader.commands).toHaveLength(0);
    written.resolve();
    await reader.accept();
    expect(asked).toEqual([run.id]);
  });

  it("is started with the first part when the source is not complete in MongoDB", async () => {
    const { world, maker, reader } = await setup();
    await world.submit(graph());
    const make = await maker.accept();
    await says(maker, make, names(1));
    await reader.accept();
  });
});

describe("a node that has missed some of its input", () => {
  it("does not count as done: it runs again with all of its input, and then finishes", async () => {
    const { world, maker, reader, state } = await setup();
    const run = await world.submit(graph());
    const make = await maker.accept();
    await says(maker, make, names(5));
    const first = await reader.accept();
    await maker.done(make);
    await world.inState(run, "u", "done");
    await says(reader, first, names(3));
    await reader.done(first);
    const second = await reader.accept();
    expect(second.attempt_epoch).toBeGreaterThan(first.attempt_epoch);
    expect(state.reopened).toBe(1);
    await says(reader, second, names(5));
    await reader.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.partsOf(run, "d")).toHaveLength(5);
  });

  it("runs again after its source has ended, when it was reported as done before", async () => {
    const { world, maker, reader } = await setup();
    const run = await world.submit(graph());
    const make = await maker.accept();
    await says(maker, make, names(1));
    const first = await reader.accept();
    await says(reader, first, names(1));
    await reader.done(first);
    await world.inState(run, "d", "queued");
    await world.clock.advance(5_000);
    // No worker reads it earlier.
    expect(reader.commands).toHaveLength(1);
    await says(maker, make, names(2));
    await maker.done(make);
    await world.inState(run, "u", "done");
    await world.clock.advance(1_000);
    const second = await reader.accept();
    await says(reader, second, names(2));
    await reader.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("fails when it misses input each time, and reports how much and from which source", async () => {
    const { world, maker, reader } = await setup();
    const run = await world.submit(graph(pulls(["u"], "ready")));
    const make = await maker.accept();
    await says(maker, make, names(250));
    await maker.done(make);
    for (let time = 0; time < 3; time++) {
      const command = await reader.accept();
      await says(reader, command, names(200));
      await reader.done(command);
    }
    const { state, error } = await world.ended(run);
    expect(state).toBe("failed");
    expect(error).toContain("input_missed");
    expect(error).toContain("50 of the 250 parts of u");
    expect(error).toContain("first 200");
  });

  it("does not become done because of another node's data in MongoDB", async () => {
    const { world, maker, reader, state } = await setup();
    state.complete = { total: 9 };
    const run = await world.submit(graph(pulls(["u"], "ready")));
    const make = await maker.accept();
    await says(maker, make, names(2));
    await maker.done(make);
    const command = await reader.accept();
    expect(state.reopened).toBe(1);
    await says(reader, command, names(2));
    await reader.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
  });
});

describe("a node that has missed nothing", () => {
  it("is done at once: each part became a batch with its own name, a batch with the names of several sources, or a failed batch that was skipped", async () => {
    const { world, maker, reader } = await setup();
    const batch = { retry_policy: { max: 0, backoff_sec: 0, batch: { max: 0, dead_letter: true } } };
    const nodes = [node("u", "make"), node("v", "make"), node("d", "read", pulls(["u", "v"], "ready", batch))];
    const run = await world.submit({ nodes });
    for (let time = 0; time < 2; time++) {
      const make = await maker.accept();
      await says(maker, make, names(2));
      await maker.done(make);
    }
    const first = await reader.accept();
    // A worker of the reference uses the batch name of the source. Our worker distinguishes two sources.
    await says(reader, first, ["b0", "u:b1"]);
    await reader.batchFailed(first, "v:b1", "broken");
    await reader.failed(first, "broken", false);
    const second = await reader.accept();
    await reader.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(reader.commands).toHaveLength(2);
  });

  it("is done at once when lists are cut into pieces: each list to its end, and no piece of an empty list", async () => {
    const { world, maker, reader } = await setup();
    const input_args = { from_nodes: ["u"], size: 2, meta_list_key: "skus" };
    const input_inline = { input_adapter: "pull.from_artifacts.rechunk:size", input_args };
    const run = await world.submit(graph({ depends_on: ["u"], io: { start_when: "ready", input_inline } }));
    const make = await maker.accept();
    await maker.batch(make, "full", { skus: [1, 2, 3] });
    await maker.batch(make, "empty", { skus: [] });
    await maker.batch(make, "plain", { other: 1 });
    await maker.done(make);
    const first = await reader.accept();
    await says(reader, first, [dedupIds.chunk("u", "full", 0), dedupIds.chunk("u", "plain", 0)]);
    await reader.done(first);
    const second = await reader.accept();
    await says(reader, second, [dedupIds.chunk("u", "full", 1)]);
    await reader.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(reader.commands).toHaveLength(2);
  });
});
