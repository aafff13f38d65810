// A MongoDB that loses data, refuses calls or never answers, used by FlowKit workers and a server. A part whose insert was refused or
// interrupted counted as stored, and a consumer never got it. One call without a response blocked a reader, the coordinator and the stop of a
// server without a limit. An endless search filled the memory.

import { serve } from "longshore/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { LongshoreError } from "../../src/core/errors.ts";
import { openMongoArtifacts } from "../../src/protocols/flowkit/worker/artifacts/mongo.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { found, type LyingMongo, lyingMongo, type Script } from "../support/lying-mongo.ts";

const maker = { taskId: "t", nodeId: "up", epoch: 1, workerId: "w" };
const consumer = { taskId: "t", nodeId: "down", epoch: 1, workerId: "w" };

async function setup(script: Script, { clock = undefined as TestClock | undefined } = {}) {
  const mongo = await lyingMongo(script);
  const store = await openMongoArtifacts({ url: mongo.url }, clock === undefined ? {} : { clock });
  onTestFinished(() => store.close());
  const ending = new AbortController();
  const uids: string[] = [];
  const read = async () => {
    const options = { pollMs: 1, backoffMaxMs: 2, eofOnTaskDone: true, signal: ending.signal };
    for await (const { uid } of store.read(consumer, ["up"], options)) uids.push(uid);
  };
  return { mongo, store, uids, ending, read };
}

const isSearch = (name: string, command: { [field: string]: unknown }, status: string) =>
  name === "find" && command.find === "artifacts" && (command.filter as { status?: unknown }).status === status;

describe("parts that MongoDB did not keep", () => {
  const part = { uid: "b0", meta: { n: 1 } };

  it.each([
    ["the connection is lost", "hang up", { code: "LONGSHORE_UNREACHABLE" }],
    ["too few servers have them", { ok: 1, n: 1, writeConcernError: { code: 64, errmsg: "waiting" } }, { code: "LONGSHORE_UNREACHABLE" }],
    ["the user may not write", { ok: 0, code: 13, errmsg: "not authorized" }, { code: 13 }],
  ] as const)("are not taken for stored when %s", async (_, answer, expected) => {
    const { store } = await setup((name) => (name === "insert" ? answer : undefined));
    await expect(store.putPartials(maker, [part])).rejects.toMatchObject(expected);
  });

  it("are written again when the connection is lost while they are confirmed", async () => {
    const { store } = await setup((name, { update }) => (name === "update" && update === "stream_progress" ? "hang up" : undefined));
    const finished = store.finish(consumer, [{ fromNode: "up", uid: "b0" }]);
    await expect(finished).rejects.toMatchObject({ code: "LONGSHORE_UNREACHABLE" });
  });
});

it("parts are delivered although the response to their claim was lost", async () => {
  const parts = ["b0", "b1", "b2"].map((batch_uid, at) => ({ batch_uid, meta: {}, created_at: new Date(at) }));
  const claims = new Set<unknown>();
  const { uids, read } = await setup((name, command) => {
    if (isSearch(name, command, "complete")) return found("artifacts", [{ node_id: "up" }]);
    if (isSearch(name, command, "partial")) return found("artifacts", parts);
    if (name === "find" && command.find === "stream_progress") {
      return found(
        "stream_progress",
        [...claims].map((batch_uid) => ({ batch_uid })),
      );
    }
    if (name === "aggregate") return found(command.aggregate, [{ n: command.aggregate === "artifacts" ? parts.length : claims.size }]);
    if (name !== "insert") return undefined;
    const rows = command.documents as { batch_uid: string }[];
    const isFirst = claims.size === 0;
    const writeErrors = rows.flatMap(({ batch_uid }, index) => (claims.has(batch_uid) ? [{ index, code: 11_000, errmsg: "there" }] : []));
    for (const { batch_uid } of rows) claims.add(batch_uid);
    return isFirst ? "hang up" : { ok: 1, n: rows.length - writeErrors.length, ...(writeErrors.length === 0 ? {} : { writeErrors }) };
  });
  await read();
  expect(uids).toEqual(["b0", "b1", "b2"]);
});

describe("a reader of a MongoDB that returns nothing", () => {
  const endless: Script = (name, command) => {
    if (name === "getMore") return found("artifacts", [], { more: true, first: false });
    return isSearch(name, command, "partial") ? found("artifacts", [], { more: true }) : undefined;
  };
  const silent: Script = (name) => (name === "find" ? "silence" : undefined);

  it.each([
    ["never answers", silent, "find artifacts"],
    ["never makes an index", (name: string) => (name === "createIndexes" ? "silence" : undefined), "createIndexes tasks"],
    ["answers with nothing and never ends", endless, "getMore artifacts"],
  ] as const)("ends with its signal when the database %s", async (_, script, command) => {
    const { mongo, ending, read } = await setup(script as Script);
    const reading = read();
    await mongo.came(command);
    ending.abort(new LongshoreError("LONGSHORE_CANCELLED", "enough"));
    await expect(reading).rejects.toThrow("enough");
  });

  it("also ends the search in the database", async () => {
    const { mongo, ending, read } = await setup(endless);
    const reading = read();
    await mongo.came("getMore artifacts", 3);
    ending.abort(new LongshoreError("LONGSHORE_CANCELLED", "enough"));
    await expect(reading).rejects.toThrow("enough");
    await mongo.came("killCursors artifacts");
  });

  it("gets a transient error when no response arrives for half a minute", async () => {
    const clock = new TestClock();
    const { mongo, store } = await setup(silent, { clock });
    const asked = store.isComplete("t", "up");
    const refused = expect(asked).rejects.toMatchObject({ code: "LONGSHORE_UNREACHABLE" });
    await mongo.came("find artifacts");
    await clock.advance(30_000);
    await refused;
  });

  const counts =
    (n: () => number): Script =>
    (name, command) =>
      name === "aggregate" ? found(command.aggregate, [{ n: n() }]) : undefined;
  let last = 0;
  it.each([
    ["counts differ each time", counts(() => last++ % 7)],
    ["claims are released each time", ((name) => (name === "delete" ? { ok: 1, n: 5 } : undefined)) as Script],
    [
      "each search is forgotten at once",
      ((name, command) => {
        if (name === "getMore") return { ok: 0, code: 43, errmsg: "cursor id 7 not found" };
        return isSearch(name, command, "partial") ? found("artifacts", [], { more: true }) : undefined;
      }) as Script,
    ],
    [
      "parts have no time and are claimed by others",
      ((name, command) => {
        if (name === "insert") return { ok: 1, n: 0, writeErrors: [{ index: 0, code: 11_000, errmsg: "there" }] };
        return isSearch(name, command, "partial") ? found("artifacts", [{ batch_uid: "b0", meta: {} }]) : undefined;
      }) as Script,
    ],
  ])("pauses between its looks when %s", async (_, script) => {
    const clock = new TestClock();
    const paused = new Promise<void>((resolve) => {
      const at = clock.at.bind(clock);
      // The reader's other timers are the half minute for a response.
      clock.at = (atMs, fn) => {
        if (atMs - clock.now() < 1_000) resolve();
        return at(atMs, fn);
      };
    });
    const { mongo, ending, read } = await setup(script, { clock });
    const reading = read();
    await paused;
    expect(mongo.counts.get("find artifacts")).toBeLessThanOrEqual(6);
    ending.abort(new LongshoreError("LONGSHORE_CANCELLED", "enough"));
    await expect(reading).rejects.toThrow("enough");
  });

  it("remembers only those nodes of an endless list of complete nodes that it reads from", async () => {
    const names = (first: boolean) => found("artifacts", [{ node_id: `n${Math.random()}` }, { node_id: "up" }], { more: true, first });
    const { read, uids } = await setup((name, command) => {
      if (name === "getMore") return names(false);
      return isSearch(name, command, "complete") ? names(true) : undefined;
    });
    await read();
    expect(uids).toEqual([]);
  });
});

describe("a server whose MongoDB", () => {
  async function served(mongo: LyingMongo) {
    const server = await serve({ ephemeral: true, port: 0, flowkit: { mongo: mongo.url } });
    onTestFinished(() => server.close());
    await server.flowkit?.createTask({ graph: { nodes: [{ node_id: "u", type: "src" }] } });
    return server;
  }

  it.each(["createIndexes tasks", "update tasks"])("never answers to %s can be closed", async (silent) => {
    const mongo = await lyingMongo((name, command) => (`${name} ${command[name]}` === silent ? "silence" : undefined));
    const server = await served(mongo);
    await mongo.came(silent);
    await server.close();
  });

  it("has an endless list of tasks reads a thousand of them", async () => {
    const page = (first: boolean) =>
      found(
        "tasks",
        Array.from({ length: 600 }, () => ({ id: `t${Math.random()}` })),
        { more: true, first },
      );
    const mongo = await lyingMongo((name, command) => {
      if (name === "getMore") return page(false);
      return name === "find" && command.find === "tasks" && "mirrored_from" in (command.filter as object) ? page(true) : undefined;
    });
    await served(mongo);
    await mongo.came("killCursors tasks");
    expect(mongo.counts.get("getMore tasks")).toBe(1);
  });
});
