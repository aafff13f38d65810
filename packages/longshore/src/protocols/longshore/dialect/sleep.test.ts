import { describe, expect, it } from "vitest";
import { openRunWorld } from "../../../../test/support/run-world.ts";
import { codeDialect } from "./dialect.ts";
import { WakeTime } from "./sleep.ts";
import type { StepSource } from "./source.ts";

const start = Date.UTC(2030, 0, 31, 9);
const at = (value: string | number) => new WakeTime({ until: value }).at(value, 0);

describe("the time at which a step wakes up", () => {
  it("is counted from its start for a length", () => {
    const wake = new WakeTime({ for: 0 });
    expect([wake.at(5, 100), wake.at("2m", 100)]).toEqual([105, 120_100]);
  });

  it("is read with an offset, and in UTC without one", () => {
    expect(at(start)).toBe(start);
    for (const text of ["2030-01-31T09:00:00Z", "2030-01-31T10:00+01:00", "2030-01-31T09:00", "2030-01-31T09:00:00.000"])
      expect(at(text)).toBe(start);
    expect(at("2030-01-31")).toBe(Date.UTC(2030, 0, 31));
  });

  it.each(["tomorrow", "31.1.2030", "2030-13-01", "", 1e300, null, true, { at: 5 }])("is refused for %j", (value) => {
    expect(() => new WakeTime({ until: value }).at(value, 0)).toThrow("it sleeps until");
    expect(() => new WakeTime({ for: value }).at(value, 0)).toThrow("it sleeps for");
  });
});

describe("a workflow with a pause", () => {
  async function started(sleep: StepSource["sleep"], input: object = {}) {
    const world = await openRunWorld({ dialects: [codeDialect] });
    const steps = [
      { id: "before", task: "t", input: null },
      { id: "pause", sleep, input: null, after: ["before"] },
      { id: "behind", task: "t", input: null, after: ["pause"] },
    ];
    await world.runs.define({ name: "w", dialect: "code", source: JSON.stringify({ name: "w", steps, output: null }) });
    const { run } = await world.runs.start({ workflow: "w", input: JSON.stringify(input) });
    const work = async () => {
      const task = await world.poll("t");
      if (task !== undefined) await world.board.complete({ taskId: task.id, grant: task.grant }, "1");
      await world.settle();
      return task?.step;
    };
    return { world, run, work };
  }

  it("continues when its time has come, also over a restart", async () => {
    const { world, run, work } = await started({ for: "1h" });
    expect(await work()).toBe("before");
    await world.clock.advance(3_599_999);
    expect(await work()).toBeUndefined();
    await world.restart();
    await world.clock.advance(1);
    expect(await work()).toBe("behind");
    expect(await world.runs.run(run.id)).toMatchObject({ state: "succeeded" });
  });

  it("continues at once after a time that has passed", async () => {
    const { work } = await started({ until: 0 });
    expect([await work(), await work()]).toEqual(["before", "behind"]);
  });

  it("fails when its data has no time", async () => {
    const { world, run, work } = await started({ until: { $ref: { path: ["at"] } } }, { at: "soon" });
    await work();
    expect(await world.runs.run(run.id)).toMatchObject({
      state: "failed",
      error: expect.stringContaining('step pause failed: it sleeps until "soon", expected milliseconds since 1970'),
    });
  });

  it("is woken by nothing when its run is cancelled", async () => {
    const { world, run, work } = await started({ for: 1_000 });
    await work();
    await world.runs.cancel(run.id);
    await world.clock.advance(2_000);
    expect(await work()).toBeUndefined();
    expect(world.rows(run.id).map(({ step, state }) => [step, state])).toEqual([
      ["before", "done"],
      ["pause", "cancelled"],
    ]);
  });
});
