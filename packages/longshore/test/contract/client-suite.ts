// What every client must do, over HTTP and in the process of the server.

import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { RunHandle, RunStatus } from "../../src/client/client.ts";
import type { RunEvent } from "../../src/client/run-event.ts";
import { RunFailed } from "../../src/client/run-failed.ts";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import type { Ref } from "../../src/reference.ts";
import { schedule } from "../../src/schedule.ts";
import { type WorkHandle, work } from "../../src/work.ts";
import { deferred } from "../support/until.ts";
import { all, approval, type ClientSetups, double, doubling, failing, idle, type OpenClient, refuse } from "./client-fixtures.ts";
import { clientStartContract } from "./client-starts.ts";

/** `open` gets a fresh server each time. */
export function clientContract(kind: string, open: () => Promise<OpenClient>): void {
  describe(`a client ${kind}`, () => {
    const opened: ClientSetups["opened"] = [];
    afterEach(async () => {
      for (const one of opened.splice(0).reverse()) await one.close();
    });
    const setup = async (): Promise<OpenClient> => {
      const made = await open();
      opened.push(made);
      return made;
    };
    const withWorker = async (): Promise<OpenClient & { worker: WorkHandle }> => {
      const made = await setup();
      const worker = await work({
        tasks: [double, refuse],
        workflows: [approval],
        on: made.on,
        clock: made.clock,
        logger: false,
        signals: false,
      });
      opened.push({ close: () => worker.stop({ force: true }) });
      return { ...made, worker };
    };

    clientStartContract({ setup, withWorker, opened });

    describe("a result", () => {
      it("of a run that failed rejects with the run and its error", async () => {
        const { client } = await withWorker();
        const run = await client.start(failing, null);
        const error = await run.result().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(RunFailed);
        expect(error).toMatchObject({ code: "LONGSHORE_RUN_FAILED", run: { id: run.id, state: "failed" }, detail: { run: run.id } });
        expect((error as Error).message).toMatch(/failing has failed: .*not today/);
      });

      it("of a run that is cancelled rejects with the reason", async () => {
        const { client } = await setup();
        const run = await client.start(idle, null);
        const waiting = expect(run.result()).rejects.toMatchObject({ run: { state: "cancelled", error: "too late" } });
        expect(await run.cancel("too late")).toBe(true);
        await waiting;
        expect(await run.cancel()).toBe(true);
      });

      it("is not waited for longer than the timeout, and the run continues", async () => {
        const { client, clock } = await setup();
        const run = await client.start(idle, null);
        const waiting = expect(run.result({ timeout: 7 })).rejects.toMatchObject({ code: "LONGSHORE_DEADLINE" });
        await clock.armed(7);
        await clock.advance(7);
        await waiting;
        expect((await run.status()).state).toBe("running");
      });

      it("is not waited for after a signal", async () => {
        const { client } = await setup();
        const run = await client.start(idle, null);
        const stopping = new AbortController();
        const waiting = expect(run.result({ signal: stopping.signal })).rejects.toThrow("enough");
        await run.status();
        stopping.abort(new Error("enough"));
        await waiting;
      });

      it("of a run that does not exist is refused", async () => {
        const { client } = await setup();
        const run = client.run("01M7QQ9PNSEHJR3KZ1W60QMF2H");
        const unknown = { code: "LONGSHORE_NOT_FOUND" };
        await expect(run.result()).rejects.toMatchObject(unknown);
        await expect(run.status()).rejects.toMatchObject(unknown);
        await expect(run.cancel()).rejects.toMatchObject(unknown);
        await expect(run.retry()).rejects.toMatchObject(unknown);
        await expect(run.rerun()).rejects.toMatchObject(unknown);
        await expect(run.signal("approve")).rejects.toMatchObject(unknown);
        await expect(all(run.events())).rejects.toMatchObject(unknown);
      });
    });

    describe("steering", () => {
      it("cancels no run that has ended", async () => {
        const { client } = await withWorker();
        const run = await client.start(doubling, { n: 1 });
        await run.result();
        expect(await run.cancel("too late")).toBe(false);
        expect((await run.status()).state).toBe("succeeded");
      });

      it("retries only a run that has ended without success", async () => {
        const { client } = await withWorker();
        const run = await client.start(failing, null);
        await expect(run.result()).rejects.toBeInstanceOf(RunFailed);
        await run.retry();
        await expect(run.result()).rejects.toBeInstanceOf(RunFailed);
        expect((await run.status()).retries).toBe(1);
        const open = await client.start(idle, null);
        await expect(open.retry()).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      });

      it("reruns a run as a new one with the same input", async () => {
        const { client } = await withWorker();
        const first = await client.start(doubling, { n: 5 });
        await first.result();
        const second = await first.rerun();
        expect(second.id).not.toBe(first.id);
        expect(await second.result()).toEqual({ twice: 10 });
      });

      it("signals a run, once for each key", async () => {
        const { client } = await withWorker();
        const run = await client.start(approval, null);
        expect(await run.signal("approve", { by: "Ada" }, { key: "a" })).toMatchObject({ number: 1, name: "approve" });
        expect(await run.signal("approve", { by: "Bob" }, { key: "a" })).toMatchObject({ number: 1 });
        expect(await run.result()).toEqual({ by: "Ada" });
        await expect(run.signal("approve")).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      });
    });

    describe("events", () => {
      it("begin with the current state, follow every change, and end with the run", async () => {
        const made = await setup();
        const run = await made.client.start(doubling, { n: 3 });
        const events: RunEvent[] = [];
        const [begun, listed] = [deferred<void>(), deferred<void>()];
        const following = (async () => {
          for await (const event of run.events()) {
            events.push(event);
            if (event.kind === "run") begun.resolve();
          }
          listed.resolve();
        })();
        await begun.promise;
        const worker = await work({ tasks: [double], on: made.on, clock: made.clock, logger: false, signals: false });
        opened.push({ close: () => worker.stop({ force: true }) });
        await following;
        expect(events[0]).toMatchObject({ kind: "task", runId: run.id, workflow: "doubling", step: "double", state: "queued", attempt: 1 });
        expect(events[1]).toMatchObject({ kind: "run", id: run.id, workflow: "doubling", state: "running", left: 1 });
        expect(events.filter(({ kind }) => kind === "task").at(-1)).toMatchObject({ state: "done" });
        expect(events.at(-1)).toMatchObject({ kind: "run", state: "succeeded", left: 0, endedAt: expect.any(Number) });
      });

      it("of a run that has ended are its last states", async () => {
        const { client } = await withWorker();
        const run = await client.start(doubling, { n: 3 });
        await run.result();
        expect(await all(run.events())).toMatchObject([
          { kind: "task", state: "done" },
          { kind: "run", state: "succeeded" },
        ]);
      });

      it("end with the reason of a signal", async () => {
        const { client } = await setup();
        const run = await client.start(idle, null);
        const stopping = new AbortController();
        const following = async () => {
          for await (const event of run.events({ signal: stopping.signal })) if (event.kind === "run") stopping.abort(new Error("enough"));
        };
        await expect(following()).rejects.toThrow("enough");
      });

      it("can be left at any time", async () => {
        const { client } = await setup();
        const run = await client.start(idle, null);
        for await (const event of run.events()) if (event.kind === "run") break;
        expect(await run.cancel()).toBe(true);
      });
    });

    describe("calling a task", () => {
      it("by its value or its name returns its output", async () => {
        const { client } = await withWorker();
        expect(await client.call(double, 4)).toBe(8);
        expect(await client.call<number>("double", 5)).toBe(10);
      });

      it("that fails rejects with its error, after the retries", async () => {
        const { client, clock } = await withWorker();
        await expect(client.call(refuse, undefined)).rejects.toMatchObject({
          code: "LONGSHORE_TASK_FAILED",
          message: "Task refuse failed: not today",
        });
        let tries = 0;
        const flaky = task("flaky", async () => {
          if (++tries === 1) throw new Error("first");
          return tries;
        });
        const made = opened[0] as OpenClient;
        const worker = await work({ tasks: [flaky], on: made.on, clock, logger: false, signals: false });
        opened.push({ close: () => worker.stop({ force: true }) });
        expect(await client.call(flaky, undefined, { retry: { limit: 1, backoff: { kind: "fixed", delayMs: 0 } } })).toBe(2);
      });

      it("has the time limit of the task value", async () => {
        const { client, on, clock } = await setup();
        const started = deferred<void>();
        const hanging = task("hanging", async (_input: null, { signal }) => {
          started.resolve();
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        });
        const worker = await work({ tasks: [hanging], on, clock, logger: false, signals: false });
        opened.push({ close: () => worker.stop({ force: true }) });
        const limited = task("hanging", hanging.handle, { timeout: "7s", retry: { limit: 0 } });
        const waiting = expect(client.call(limited, null)).rejects.toMatchObject({ code: "LONGSHORE_TASK_FAILED" });
        await started.promise;
        for (let passed = 0; passed < 3; passed++) await clock.advance(7_000);
        await waiting;
      });

      it("is not waited for after a signal", async () => {
        const { client } = await setup();
        const stopping = new AbortController();
        const waiting = expect(client.call("nobody", 1, { signal: stopping.signal })).rejects.toThrow("enough");
        stopping.abort(new Error("enough"));
        await waiting;
      });
    });

    describe("schedules", () => {
      const minutely = () => schedule("minutely", { every: "1m", workflow: doubling, input: { n: 2 } });

      it("are stored with the workflow that they start, and start it", async () => {
        const { client, clock } = await withWorker();
        expect(await client.define(minutely())).toEqual({ name: "minutely", created: true, nextAt: nextMinute(clock.now()) });
        expect(await client.define(minutely())).toMatchObject({ name: "minutely", created: false });
        await clock.advance(nextMinute(clock.now()) - clock.now());
        await expect.poll(async () => (await client.schedule("minutely").status()).history).toHaveLength(1);
        const { history, workflow: started, input, every, upcoming } = await client.schedule("minutely").status();
        expect({ started, input, every }).toEqual({ started: "doubling", input: { n: 2 }, every: 60_000 });
        expect(upcoming).toHaveLength(10);
        expect(history).toMatchObject([{ at: clock.now(), outcome: "started" }]);
        expect(await client.run(history[0]?.runId as string).result()).toEqual({ twice: 4 });
      });

      it("refuse an input that does not fit, invalid times, and a workflow that is not defined", async () => {
        const { client } = await setup();
        const checked = graph("checked", (g, input) => g.step(double, input.n), { input: z.object({ n: z.number() }) });
        const bad = { code: "LONGSHORE_BAD_INPUT" };
        const wrong = schedule("s", { every: "1m", workflow: checked, input: {} });
        await expect(client.define(wrong)).rejects.toMatchObject({ ...bad, detail: { field: "n" } });
        await client.define(checked);
        const named = schedule("s", { every: "1m", workflow: "checked", input: { n: "one" } });
        await expect(client.define(named)).rejects.toMatchObject({ ...bad, detail: { field: "n" } });
        await expect(client.define(schedule("s", { cron: "often", workflow: idle, input: 1 }))).rejects.toMatchObject(bad);
        await expect(client.define(schedule("s", { every: "1m", workflow: "nothing" }))).rejects.toMatchObject({
          code: "LONGSHORE_NOT_FOUND",
        });
        expect(await all(client.schedules())).toEqual([]);
      });

      it("are paused, resumed, run by hand, backfilled and removed", async () => {
        const { client, clock } = await withWorker();
        await client.define(minutely());
        const handle = client.schedule("minutely");
        expect(await handle.pause("holidays")).toMatchObject({ paused: "holidays", dueAt: null, upcoming: [] });
        const run = await handle.run<{ twice: number }>();
        expect((await run.result()).twice).toBe(4);
        expect(await handle.resume()).toMatchObject({ paused: null });
        const to = new Date(nextMinute(clock.now()) - 60_000);
        const filling = await handle.backfill({ from: to.getTime() - 120_000, to, overlap: "allow" });
        expect(filling.backfill).toMatchObject({ total: 3, to: to.getTime(), overlap: "allow" });
        await expect(handle.backfill({ from: "soon", to })).rejects.toMatchObject({
          code: "LONGSHORE_BAD_INPUT",
          detail: { field: "from" },
        });
        expect(await handle.endBackfill()).toMatchObject({ backfill: null });
        expect([await handle.remove(), await handle.remove()]).toEqual([true, false]);
        const unknown = { code: "LONGSHORE_NOT_FOUND", detail: { field: "name" } };
        await expect(handle.status()).rejects.toMatchObject(unknown);
        await expect(handle.run()).rejects.toMatchObject(unknown);
        expect(await run.status()).toMatchObject({ state: "succeeded" });
      });

      it("run by hand are refused while a run is open, unless another overlap rule is given", async () => {
        const { client } = await setup();
        await client.define(schedule("idly", { every: "1h", workflow: idle, input: 1 }));
        const handle = client.schedule("idly");
        const first = await handle.run();
        await expect(handle.run()).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
        expect((await handle.run({ overlap: "allow" })).id).not.toBe(first.id);
      });

      it("are listed by name, and by workflow", async () => {
        const { client } = await setup();
        for (const name of ["b", "a"])
          await client.define(schedule(name, { cron: "0 3 * * *", timezone: "Europe/Berlin", workflow: idle }));
        await client.define(schedule("c", { at: "2100-01-01T00:00:00Z", workflow: doubling, input: { n: 1 } }));
        const listed = await all(client.schedules());
        expect(listed.map(({ name }) => name)).toEqual(["a", "b", "c"]);
        expect(listed[0]).toMatchObject({ cron: "0 3 * * *", timezone: "Europe/Berlin", overlap: "skip", history: [] });
        expect((await all(client.schedules({ workflow: "doubling" }))).map(({ name }) => name)).toEqual(["c"]);
      });
    });

    describe("lists", () => {
      it("have runs newest first, over several pages, by workflow and state", async () => {
        const { client } = await setup();
        const handles: RunHandle[] = [];
        for (let at = 0; at < 205; at++) handles.push(await client.start(idle, at));
        const other = await client.start(failing, null);
        await handles[3]?.cancel();
        const listed = await all(client.runs());
        expect(listed.map(({ id }) => id)).toEqual([other.id, ...handles.map(({ id }) => id).reverse()]);
        expect(listed.at(-1)).toMatchObject({ workflow: "idle", state: "running", input: 0 } satisfies Partial<RunStatus>);
        expect(await ids(client.runs({ workflow: "failing" }))).toEqual([other.id]);
        expect(await ids(client.runs({ state: "cancelled" }))).toEqual([handles[3]?.id]);
        for await (const { id } of client.runs()) {
          expect(id).toBe(other.id);
          break;
        }
      });

      it("have the newest version of each workflow", async () => {
        const { client, clock } = await setup();
        await client.define(doubling);
        await clock.advance(1);
        await client.define(graph("doubling", (g, input: Ref<{ n: number }>) => ({ other: g.step(double, input.n) })));
        await client.define(approval);
        const shown = (await all(client.definitions())).map(({ name, version, dialect }) => [name, version, dialect]);
        expect(shown).toEqual([
          ["doubling", 2, "code"],
          ["approval", 1, "function"],
        ]);
        expect((await all(client.definitions({ dialect: "function" }))).map(({ name }) => name)).toEqual(["approval"]);
      });
    });
  });
}

function nextMinute(time: number): number {
  return Math.floor(time / 60_000 + 1) * 60_000;
}

async function ids(list: AsyncIterable<RunStatus>): Promise<string[]> {
  return (await all(list)).map(({ id }) => id);
}
