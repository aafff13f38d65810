// Some callers choose ids, or derive them from a key: the runs of a batch's items, runs that a worker starts with a key, tasks without a
// run. The attacker removes such a run or task, and starts one with the same id before the server has removed all rows of the first,
// such as after a crash in between. The second one must neither lose its rows with the first nor inherit them. And a worker that still holds
// a task of the first must not report on the second.

import { describe, expect, it } from "vitest";
import { places } from "../support/parts.ts";
import { dayMs, forever, setup } from "../support/retention.ts";

/** Aborts after the transaction that makes the run or task disappear, as a crash would. */
function crashAfter({ commits: before }: { readonly commits: number }, commit: { readonly commits: number }): AbortSignal {
  return {
    get aborted() {
      return commit.commits > before;
    },
  } as AbortSignal;
}

const old = { ...forever, ageMs: dayMs };

describe.each(places)("an id that is used again after a removal, in %s", (place) => {
  it("the second run keeps its tasks and inherits nothing, when it starts before the rows of the first are removed", async () => {
    const { parts, prune, rows, log } = await setup(place);
    await parts.define("w", ["a", "b"]);
    const first = await parts.start("w", { id: "item" });
    await log(`${first.id}.0`, first.id);
    await parts.complete(await parts.claim());
    await parts.complete(await parts.claim(), '{"from":"the first"}');
    parts.clock.jump(2 * dayMs);
    expect((await prune({ runs: old }, crashAfter({ commits: parts.commit.commits }, parts.commit))).runs).toBe(1);
    expect(rows()).toMatchObject({ run: 0, task: 2, pruned: 1 });

    await parts.start("w", { id: "item" });
    await prune({});
    expect(rows()).toMatchObject({ run: 1, task: 1, log: 0, pruned: 0 });
    expect((await parts.board.task("item.1"))?.output).toBeUndefined();
    await parts.complete(await parts.claim());
    await parts.complete(await parts.claim());
    expect((await parts.runs.run("item"))?.state).toBe("succeeded");
  });

  it("a start that comes together with the removal begins a run of its own", async () => {
    const { parts, retention, rows } = await setup(place);
    await parts.define("w", ["a"]);
    await parts.start("w", { id: "item", key: "once" });
    await parts.complete(await parts.claim());
    const definition = await parts.runs.definition("w");
    const wanted = { id: "item", key: "once", workflow: "w", definitionId: definition!.id, input: "null" };
    const removing = retention.removeRun("item");
    // By then the order to remove the run is in the batch that the start joins.
    await parts.counts.counted();
    await null;
    const { created } = await parts.runs.start(wanted);
    expect([await removing, created]).toEqual([true, true]);
    expect(rows()).toMatchObject({ run: 1, task: 1, run_key: 1, pruned: 0 });
    await parts.complete(await parts.claim());
    expect((await parts.runs.run("item"))?.state).toBe("succeeded");
  });

  it("the second task without a run keeps its log, attempts and parts", async () => {
    const { parts, streams, prune, rows, log, post } = await setup(place);
    const work = async () => {
      const { grant } = await post("T1");
      expect(await streams.put({ taskId: "T1", grant }, [{ uid: "p1", value: "1" }])).toBe("ok");
      return { id: "T1", grant };
    };
    const first = await work();
    await parts.board.settle({ verb: "complete", hold: { taskId: "T1", grant: first.grant }, output: "1" });
    parts.clock.jump(2 * dayMs);
    expect((await prune({ tasks: old }, crashAfter({ commits: parts.commit.commits }, parts.commit))).tasks).toBe(1);
    await work();
    await log("T1", null);
    await prune({});
    expect(rows()).toMatchObject({ task: 1, part: 1, part_uid: 1, log: 1, pruned: 0 });
    expect((await streams.read("T1", 0, 10)).parts).toHaveLength(1);
  });

  it("a worker of the first run cannot report on a step of the second", async () => {
    const { parts, retention } = await setup(place);
    parts.clock.jump(Date.UTC(2026, 0, 1) - parts.clock.now());
    await parts.define("w", ["a"]);
    await parts.start("w", { id: "item" });
    const late = await parts.claim("late");
    await parts.runs.tell("item", { kind: "cancel" });
    await parts.board.settle({ verb: "defer", hold: { taskId: late.id, grant: late.grant }, delayMs: 0 });
    expect(await retention.removeRun("item")).toBe(true);

    await parts.start("w", { id: "item" });
    const current = await parts.claim("current");
    const report = ({ id, grant }: { id: string; grant: number }) =>
      parts.board.settle({ verb: "complete", hold: { taskId: id, grant }, output: "1" });
    expect(await report(late)).not.toBe("ok");
    expect(await report(current)).toBe("ok");
  });

  it("a worker of the first task without a run cannot report on the second", async () => {
    const { parts, prune, post } = await setup(place);
    parts.clock.jump(Date.UTC(2026, 0, 1) - parts.clock.now());
    const late = await post("T1");
    await parts.fail(late);
    parts.clock.jump(2 * dayMs);
    expect((await prune({ tasks: old })).tasks).toBe(1);
    const current = await post("T1");
    expect(current.grant).toBeGreaterThan(late.grant);
    const hold = { taskId: "T1", grant: late.grant };
    expect(await parts.board.settle({ verb: "complete", hold, output: "1" })).not.toBe("ok");
  });
});
