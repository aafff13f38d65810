// The contract of every store of artifacts. The caller passes a function that opens a store, and tasks whose nodes a test starts, retries
// and ends like a coordinator.

import { afterEach, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/core/json/json.ts";
import {
  type ArtifactStore,
  type Attempt,
  type PartialArtifact,
  partsMax,
  type UpstreamPart,
} from "../../src/protocols/flowkit/wire/artifacts/artifacts.ts";
import type { ActiveRun } from "../../src/protocols/flowkit/wire/shapes.ts";

export interface ArtifactWorld {
  readonly store: ArtifactStore;
  /** A task whose nodes have all begun: their first attempts, in order. */
  begin(nodes: readonly string[]): Promise<Attempt[]>;
  /** The next attempt of the node, after this one has failed. */
  again(attempt: Attempt): Promise<Attempt>;
  /** What the coordinator does when the worker reports that the node is done. */
  done(attempt: Attempt, meta: JsonObject): Promise<void>;
  fail(attempt: Attempt): Promise<void>;
  cancel(attempt: Attempt): Promise<void>;
  cancelTask(taskId: string): Promise<void>;
  close(): Promise<void>;
}

export interface ArtifactKind {
  readonly name: string;
  open(): Promise<ArtifactWorld>;
  /** Foreign writers share the store, so only the data of a later attempt shows that an attempt is over. */
  readonly fencesByRow?: boolean;
}

type Setup = () => Promise<ArtifactWorld>;

export function artifactContract(kind: ArtifactKind): void {
  describe(kind.name, () => {
    const opened: ArtifactWorld[] = [];
    afterEach(async () => {
      for (const world of opened.splice(0)) await world.close();
    });
    const setup: Setup = async () => {
      const world = await kind.open();
      opened.push(world);
      return world;
    };
    writing(setup, kind);
    reading(setup);
    tryingAgain(setup);
    ending(setup);
    states(setup);
  });
}

function writing(setup: Setup, kind: ArtifactKind): void {
  it("[F-ART-02] stores a part once, in its place", async () => {
    const { store, begin, done } = await setup();
    const [source, sink] = await pair(begin);
    expect(await store.putPartials(source, [part("b"), part("a", { n: 1 })])).toBe(true);
    expect(await store.putPartials(source, [part("a", { n: 1 }), part("c", { n: 2 })])).toBe(true);
    await done(source, {});
    const read = await all(store, sink, ["up"]);
    expect(read.map(({ uid, meta }) => [uid, meta])).toEqual([
      ["b", {}],
      ["a", { n: 1 }],
      ["c", { n: 2 }],
    ]);
  });

  it("accepts an empty list of parts and does nothing", async () => {
    const { store, begin } = await setup();
    const [source] = await pair(begin);
    expect(await store.putPartials(source, [])).toBe(true);
  });

  it("a later attempt can change the value of a part, and an earlier one cannot change it back", async () => {
    const { store, begin, again, done } = await setup();
    const [first, sink] = await pair(begin);
    await store.putPartials(first, [part("a", { n: 1 })]);
    const second = await again(first);
    expect(await store.putPartials(second, [part("a", { n: 2 })])).toBe(true);
    expect(await store.putPartials(first, [part("a", { n: 3 })])).toBe(false);
    await done(second, {});
    expect(await all(store, sink, ["up"])).toEqual([{ fromNode: "up", uid: "a", meta: { n: 2 } }]);
  });

  it("an earlier attempt cannot complete a node that a later one has completed", async () => {
    const { store, begin, again } = await setup();
    const [first] = await pair(begin);
    const second = await again(first);
    expect(await store.complete(second, { total: 2 })).toBe(true);
    expect(await store.complete(first, { total: 1 })).toBe(false);
  });

  // When foreign writers share the store, only the data of a later attempt shows that this one is over.
  if (!kind.fencesByRow) {
    it("an attempt that is over can write nothing new", async () => {
      const { store, begin, again } = await setup();
      const [first, sink] = await pair(begin);
      await again(first);
      expect(await store.putPartials(first, parts("zombie"))).toBe(false);
      expect(await store.complete(first, {})).toBe(false);
      expect(await store.finish({ ...sink, epoch: sink.epoch + 100 }, [{ fromNode: "up", uid: "zombie" }])).toBe(false);
    });
  }

  it("refuses more parts than one call may have, and names that cannot be stored", async () => {
    const { store, begin } = await setup();
    const [source] = await pair(begin);
    const many = Array.from({ length: partsMax + 1 }, (_, at) => part(`b${at}`));
    await expect(store.putPartials(source, many)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT", detail: { field: "parts" } });
    const message = expect.stringContaining('parts[1].uid is "", expected a text of 1 to 512 characters');
    await expect(store.putPartials(source, [part("a"), part("")])).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT", message });
  });

  it("stores any JSON value", async () => {
    const { store, begin, done } = await setup();
    const [source, sink] = await pair(begin);
    const meta = { text: "é \u0001 \ud83d\ude00", none: null, list: [1, 2.5, [true]], deep: { "a.b": { $c: 1 } }, large: 2 ** 40, "": "" };
    await store.putPartials(source, [part("a", meta)]);
    await done(source, {});
    expect(await all(store, sink, ["up"])).toEqual([{ fromNode: "up", uid: "a", meta }]);
  });
}

function reading(setup: Setup): void {
  it("[A01] returns more than two hundred parts, each once and in order", async () => {
    const { store, begin, done } = await setup();
    const [source, sink] = await pair(begin);
    const uids = Array.from({ length: 1_250 }, (_, at) => `b${at}`);
    await store.putPartials(source, parts(...uids.slice(0, 1_000)));
    await store.putPartials(source, parts(...uids.slice(1_000)));
    await done(source, {});
    expect((await all(store, sink, ["up"])).map(({ uid }) => uid)).toEqual(uids);
  });

  it("[F-PULL-01] returns a part while its source still works, and continues with the next", async () => {
    const { store, begin, done } = await setup();
    const [source, sink] = await pair(begin);
    const stream = open(store, sink, ["up"]);
    const first = stream.next();
    await store.putPartials(source, parts("a"));
    expect((await first).value).toMatchObject({ uid: "a" });
    const second = stream.next();
    await store.putPartials(source, parts("b"));
    expect((await second).value).toMatchObject({ uid: "b" });
    const end = stream.next();
    await done(source, {});
    expect((await end).done).toBe(true);
  });

  it("[A03] returns the part that was written right before its source ended", async () => {
    const { store, begin, done } = await setup();
    const [source, sink] = await pair(begin);
    await store.putPartials(source, parts("a"));
    const stream = open(store, sink, ["up"]);
    expect((await stream.next()).value).toMatchObject({ uid: "a" });
    await store.putPartials(source, parts("b"));
    await done(source, {});
    expect((await stream.next()).value).toMatchObject({ uid: "b" });
    expect((await stream.next()).done).toBe(true);
  });

  it("[F-EMPTY-01] ends at once when a source has ended without parts", async () => {
    const { store, begin, done } = await setup();
    const [source, sink] = await pair(begin);
    await done(source, {});
    expect(await all(store, sink, ["up"])).toEqual([]);
  });

  it("[A20] separates equal uids of two sources", async () => {
    const { store, begin, done } = await setup();
    const [left, right, sink] = (await begin(["left", "right", "down"])) as [Attempt, Attempt, Attempt];
    await store.putPartials(left, [part("a", { of: "left" })]);
    await store.putPartials(right, [part("a", { of: "right" })]);
    await done(left, {});
    await done(right, {});
    const read = await all(store, sink, ["left", "right"]);
    expect(read.map(({ fromNode, meta }) => [fromNode, meta.of])).toEqual([
      ["left", "left"],
      ["right", "right"],
    ]);
    expect(await store.finish(sink, read)).toBe(true);
  });

  it("waits for every source before it ends", async () => {
    const { store, begin, done } = await setup();
    const [left, right, sink] = (await begin(["left", "right", "down"])) as [Attempt, Attempt, Attempt];
    await done(left, {});
    const stream = open(store, sink, ["left", "right", "left"]);
    const first = stream.next();
    await store.putPartials(right, parts("a"));
    expect((await first).value).toMatchObject({ fromNode: "right", uid: "a" });
    const end = stream.next();
    await done(right, {});
    expect((await end).done).toBe(true);
  });

  it("two consumers both get everything", async () => {
    const { store, begin, done } = await setup();
    const [source, one, two] = (await begin(["up", "one", "two"])) as [Attempt, Attempt, Attempt];
    await store.putPartials(source, parts("a", "b"));
    await done(source, {});
    expect((await all(store, one, ["up"])).map(({ uid }) => uid)).toEqual(["a", "b"]);
    expect((await all(store, two, ["up"])).map(({ uid }) => uid)).toEqual(["a", "b"]);
  });

  it("throws the abort reason of its signal, also while it waits", async () => {
    const { store, begin } = await setup();
    const [source, sink] = await pair(begin);
    await store.putPartials(source, parts("a"));
    const cancel = new AbortController();
    const stream = open(store, sink, ["up"], { signal: cancel.signal });
    await stream.next();
    const waiting = stream.next();
    cancel.abort(new Error("cancelled for a test"));
    await expect(waiting).rejects.toThrow("cancelled for a test");
  });

  it("does not end with its sources when the option keeps it open", async () => {
    const { store, begin, done } = await setup();
    const [source, sink] = await pair(begin);
    await store.putPartials(source, parts("a"));
    await done(source, {});
    const cancel = new AbortController();
    const stream = open(store, sink, ["up"], { eofOnTaskDone: false, signal: cancel.signal });
    await stream.next();
    const waiting = stream.next();
    cancel.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  it("ends with an error when the store is closed", async () => {
    const { store, begin } = await setup();
    const [, sink] = await pair(begin);
    const waiting = open(store, sink, ["up"]).next();
    await store.close();
    await expect(waiting).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
    await store.close();
  });
}

function tryingAgain(setup: Setup): void {
  it("[F-BP-01, A02] a later attempt gets only the parts that the one before did not finish", async () => {
    const { store, begin, again, done } = await setup();
    const [source, first] = await pair(begin);
    await store.putPartials(source, parts("a", "b", "c"));
    await done(source, {});
    const read = await all(store, first, ["up"]);
    expect(await store.finish(first, read.slice(0, 1))).toBe(true);
    const second = await again(first);
    expect((await all(store, second, ["up"])).map(({ uid }) => uid)).toEqual(["b", "c"]);
    await store.finish(second, [{ fromNode: "up", uid: "b" }]);
    const third = await again(second);
    expect((await all(store, third, ["up"])).map(({ uid }) => uid)).toEqual(["c"]);
    expect(await store.finish(third, [{ fromNode: "up", uid: "c" }])).toBe(true);
    expect(await store.finish(third, [])).toBe(true);
  });

  it("a later attempt also gets parts that an earlier one still reads", async () => {
    const { store, begin, again, done } = await setup();
    const [source, first] = await pair(begin);
    await store.putPartials(source, parts("a"));
    const zombie = open(store, first, ["up"]);
    await zombie.next();
    const second = await again(first);
    const stream = open(store, second, ["up"]);
    expect((await stream.next()).value).toMatchObject({ uid: "a" });
    await store.putPartials(source, parts("b"));
    // It does not matter whether the replaced attempt also gets the part: its results are refused.
    await zombie.next();
    await zombie.return?.(undefined);
    await done(source, {});
    expect((await stream.next()).value).toMatchObject({ uid: "b" });
    expect((await stream.next()).done).toBe(true);
  });
}

function ending(setup: Setup): void {
  it("[F-ART-03] a node is complete when its worker and the coordinator have marked it", async () => {
    const { store, begin, done } = await setup();
    const [source] = await pair(begin);
    expect(await store.isComplete(source.taskId, "up")).toBe(false);
    await store.putPartials(source, parts("a"));
    expect(await store.isComplete(source.taskId, "up")).toBe(false);
    await done(source, { total: 1 });
    expect(await store.isComplete(source.taskId, "up")).toBe(true);
    expect(await store.isComplete(source.taskId, "down")).toBe(false);
    expect(await store.isComplete("no such task", "up")).toBe(false);
  });

  it("reports that a source is not a node of the task, so that the reader does not wait for its parts", async () => {
    const { store, begin } = await setup();
    const [, sink] = await pair(begin);
    const reading = open(store, sink, ["nobody"]).next();
    await expect(reading).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND", detail: { field: "from_nodes" } });
  });

  it("[A19] returns the parts of a failed source, and then reports its failure", async () => {
    const { store, begin, fail } = await setup();
    const [source, sink] = await pair(begin);
    await store.putPartials(source, parts("a"));
    await fail(source);
    const stream = open(store, sink, ["up"]);
    expect((await stream.next()).value).toMatchObject({ uid: "a" });
    await expect(stream.next()).rejects.toMatchObject({
      name: "UpstreamFailed",
      nodeId: "up",
      message: 'The upstream node "up" has failed.',
    });
  });

  it("reports that a source was cancelled", async () => {
    const { store, begin, cancel } = await setup();
    const [source, sink] = await pair(begin);
    const waiting = open(store, sink, ["up"]).next();
    await cancel(source);
    await expect(waiting).rejects.toMatchObject({ name: "UpstreamFailed", message: 'The upstream node "up" was cancelled.' });
  });

  it("returns the newest epoch of a node", async () => {
    const world = await setup();
    const { store } = world;
    const [first] = (await world.begin(["up"])) as [Attempt];
    expect(await store.epochOf(first.taskId, "up")).toBe(first.epoch);
    const second = await world.again(first);
    expect(second.epoch).toBeGreaterThan(first.epoch);
    expect(await store.epochOf(first.taskId, "up")).toBe(second.epoch);
    expect(await store.epochOf(first.taskId, "no such node")).toBe(null);
    expect(await store.epochOf("no such task", "up")).toBe(null);
  });

  it("[F-CANC-03] reports to a worker that its task is to be cancelled", async () => {
    const { store, begin, cancelTask } = await setup();
    const [source] = await pair(begin);
    expect(await store.cancelled(source.taskId, "up")).toBe(false);
    await cancelTask(source.taskId);
    expect(await store.cancelled(source.taskId, "up")).toBe(true);
    expect(await store.cancelled("no such task", "up")).toBe(false);
  });
}

function states(setup: Setup): void {
  it("stores the run that a worker has saved as its current one, until the worker saves that it has none", async () => {
    const { store } = await setup();
    expect(await store.loadState("w-1")).toBeNull();
    const run: ActiveRun = {
      ...{ task_id: "t", node_id: "n", step_type: "r", attempt_epoch: 3, lease_id: "l", cancel_token: "c" },
      ...{ started_at_ms: 1_700_000_000_000, state: "running", checkpoint: { at: 1 } },
    };
    await store.saveState("w-1", run);
    expect(await store.loadState("w-1")).toEqual(run);
    await store.saveState("w-1", { ...run, state: "cancelling" });
    expect(await store.loadState("w-1")).toMatchObject({ state: "cancelling" });
    expect(await store.loadState("w-2")).toBeNull();
    await store.saveState("w-1", null);
    expect(await store.loadState("w-1")).toBeNull();
  });

  it("returns null for the document of a task that does not exist", async () => {
    const { store } = await setup();
    expect(await store.task("no such task")).toBeNull();
  });
}

async function pair(begin: ArtifactWorld["begin"]): Promise<[Attempt, Attempt]> {
  return (await begin(["up", "down"])) as [Attempt, Attempt];
}

function part(uid: string, meta: JsonObject = {}): PartialArtifact {
  return { uid, meta };
}

function parts(...uids: string[]): PartialArtifact[] {
  return uids.map((uid) => part(uid));
}

function open(
  store: ArtifactStore,
  consumer: Attempt,
  sources: readonly string[],
  options: { eofOnTaskDone?: boolean; signal?: AbortSignal } = {},
): AsyncIterator<UpstreamPart, void> {
  const patience = { pollMs: 2, backoffMaxMs: 8, eofOnTaskDone: true, signal: new AbortController().signal };
  return store.read(consumer, sources, { ...patience, ...options })[Symbol.asyncIterator]() as AsyncIterator<UpstreamPart, void>;
}

async function all(store: ArtifactStore, consumer: Attempt, sources: readonly string[]): Promise<UpstreamPart[]> {
  const read: UpstreamPart[] = [];
  const stream = open(store, consumer, sources);
  for (let next = await stream.next(); !next.done; next = await stream.next()) read.push(next.value);
  return read;
}
