// Turns of durable functions: the state of a function when it begins again, on a real server.

import { describe, expect, it } from "vitest";
import { holds, setup } from "../../../test/support/functions.ts";
import { task } from "../../core/task.ts";
import { work } from "../../work.ts";
import { workflow } from "../../workflow.ts";
import type { Workflow } from "../../workflow-value.ts";
import { replay } from "./check.ts";

describe("a durable function that begins again", () => {
  it("has the same numbers and ids after a retry, and different ones in its next pass", async () => {
    const { server, clock, api } = await setup();
    let isBroken = true;
    const flaky = task("flaky", async () => {
      if (isBroken) throw new Error("broken");
    });
    const echo = task("echo", async (id: string) => id);
    const made = workflow("it", async (w, ids: string[] = []) => {
      const id = w.uuid();
      const echoed = await w.step(echo, id);
      await w.step(flaky, undefined);
      const all = [...(ids ?? []), id, echoed];
      return all.length < 4 ? w.continueAs(all) : all;
    });
    const worker = await work({ tasks: [flaky, echo], workflows: [made], on: server, clock, logger: false, signals: false });
    const { id } = await server.start(made as Workflow, null);
    expect(await server.result(id)).toMatchObject({ state: "failed" });
    isBroken = false;
    await api("POST", `/runs/${id}/retry`);
    const ids = (await server.result(id)).output as string[];
    expect(ids).toEqual([ids[0], ids[0], ids[2], ids[2]]);
    expect(ids[2]).not.toBe(ids[0]);
    const { body: journal } = await api("GET", `/runs/${id}/journal`);
    expect(journal).toMatchObject({ runId: id, pass: 1, input: [ids[0], ids[0]] });
    expect(await replay(journal, made)).toEqual({ state: "done", commands: 2 });
    await worker.stop();
  });

  it("sleeps equally long in each pass, because each pass has its own start time", async () => {
    const { run, clock, steps } = await setup();
    const times: number[] = [];
    const { id, worker, result } = await run(async (w, count: never) => {
      times.push(w.now().getTime());
      if ((count as number) === 2) return count;
      await w.sleep("1h");
      return w.continueAs((count as number) + 1);
    }, 0);
    for (const pass of [0, 1]) {
      await holds(async () => expect([times.length, (await steps(id)).at(-1)?.id]).toEqual([pass + 1, "sleep"]));
      await clock.advance(3_600_000);
    }
    expect((await result()).output).toBe(2);
    const [first, second, third] = times as [number, number, number];
    expect(second - first).toBeGreaterThanOrEqual(3_600_000);
    expect(third - second).toBeGreaterThanOrEqual(3_600_000);
    await worker.stop();
  });
});
