import { describe, expect, it } from "vitest";
import { startOverEngine } from "../../../../test/support/admin.ts";
import type { Engine } from "../../../server/engine.ts";

const step = (id: string, more: object = {}) => ({ id, task: id, input: null, ...more });
const source = {
  ...{ name: "scan", output: null },
  steps: [
    step("pages"),
    step("total", { after: ["pages"], startWhen: "first-part" }),
    step("index", { after: ["pages"], startWhen: "first-part" }),
    step("report", { after: ["pages"] }),
  ],
};

async function setup() {
  const server = await startOverEngine();
  const { engine } = server;
  await engine.runs.define({ name: "scan", dialect: "code", source: JSON.stringify(source) });
  const { run } = await engine.runs.start({ workflow: "scan", input: "null" });
  const streams = async () => (await server.api("GET", `/runs/${run.id}/streams`)).body;
  return { ...server, run, streams };
}

async function claim({ board }: Engine, name: string) {
  const [task] = await board.claim({ reach: { names: [name], labels: [] }, holder: "ann", termMs: 60_000 });
  if (task === undefined) throw new Error(`There is no task ${name}.`);
  return { taskId: task.id, grant: task.grant };
}

const parts = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => ({ uid: `p${from + at}`, value: "1" }));

describe("the streams of a run", () => {
  it("are the steps that have produced parts, with the steps that read them", async () => {
    const { engine, clock, run, streams } = await setup();
    expect(await streams()).toEqual({ items: [], next: null });
    const pages = await claim(engine, "pages");
    await engine.parts.put(pages, parts(1, 3));
    const first = clock.now();
    await clock.advance(7);
    await engine.parts.put(pages, parts(4, 4));
    const total = await claim(engine, "total");
    await engine.parts.finish(total, `${run.id}.0`, ["p1", "p2", "p3"]);
    const waiting = { isWhole: true, read: null, behind: null, oldest: null };
    expect((await streams()).items).toEqual([
      {
        ...{ step: "pages", given: 4, newestAt: first + 7, hasMoreReaders: false },
        readers: [
          { step: "total", isWhole: true, read: 3, behind: 1, oldest: { sequence: 4, at: first + 7 } },
          { step: "index", ...waiting },
        ],
      },
    ]);
    await engine.parts.finish(total, `${run.id}.0`, ["p4"]);
    expect((await streams()).items[0].readers[0]).toMatchObject({ read: 4, behind: 0, oldest: null });
  });

  it("include a reader that waited for the end of the step", async () => {
    const { engine, run, streams } = await setup();
    const pages = await claim(engine, "pages");
    await engine.parts.put(pages, parts(1, 2));
    await engine.board.complete(pages, "null");
    const report = await claim(engine, "report");
    await engine.parts.finish(report, `${run.id}.0`, ["p2"]);
    expect((await streams()).items[0].readers.at(-1)).toMatchObject({ step: "report", read: 1, behind: 1, oldest: { sequence: 1 } });
  });

  it("of another life of a step are not counted", async () => {
    const { api, engine, run, streams } = await setup();
    const pages = await claim(engine, "pages");
    await engine.parts.put(pages, parts(1, 2));
    await engine.board.fail(pages, { error: "no", retryable: false });
    await engine.runs.cancel(run.id);
    await api("POST", `/runs/${run.id}/restart`, {});
    expect((await streams()).items).toEqual([]);
    await engine.parts.put(await claim(engine, "pages"), parts(1, 1));
    expect((await streams()).items).toMatchObject([{ step: "pages", given: 1 }]);
  });

  it("of an unknown run are not found", async () => {
    const { api } = await setup();
    expect((await api("GET", "/runs/none/streams")).status).toBe(404);
  });
});
