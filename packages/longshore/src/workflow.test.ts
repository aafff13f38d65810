// Durable functions on a real server with workers in its process and over HTTP.

import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { type Body, double, holds, refuse, setup } from "../test/support/functions.ts";
import { deferred } from "../test/support/until.ts";
import { connect } from "./client/index.ts";
import { task } from "./core/task.ts";
import { graph } from "./graph.ts";
import { workflowGraph } from "./protocols/workflow-graph/worker/index.ts";
import { replay } from "./runner/function/check.ts";
import { StepError } from "./runner/function/step-error.ts";
import { work } from "./work.ts";
import { type FunctionWorkflow, workflow } from "./workflow.ts";
import type { Workflow } from "./workflow-value.ts";

describe("a durable function", () => {
  it("returns what its steps return, by value, by name and over data", async () => {
    const { run, steps } = await setup();
    const { id, worker, result } = await run(
      async (w, input: never) => {
        const first = await w.step(double, (input as { n: number }).n);
        const second = await w.call<number>("double", first);
        const all = await w.map([1, 2, 3, 4], double, { concurrency: 2 });
        return { first, second, all };
      },
      { n: 4 },
    );
    expect(await result()).toMatchObject({ state: "succeeded", output: { first: 8, second: 16, all: [2, 4, 6, 8] } });
    expect((await steps(id)).map(({ id: step }: { id: string }) => step)).toEqual([
      "it",
      "double",
      "double-2",
      "double-3",
      "double-4",
      "double-5",
      "double-6",
    ]);
    await worker.stop();
  });

  it("has the types of its schema, and fails a run whose input does not fit the current code", async () => {
    const of = (input: z.ZodType<{ n: number }, { n?: number }>) => workflow("counted", async (w, { n }) => w.step(double, n), { input });
    const made = of(z.object({ n: z.number().max(9).default(4) }));
    expectTypeOf(made).toEqualTypeOf<FunctionWorkflow<{ n?: number }, number>>();
    // @ts-expect-error: the schema has no such field.
    workflow("counted", async (w, { m }) => w.step(double, m), { input: z.object({ n: z.number() }) });
    const { server, start } = await setup();
    await server.define(made);
    const { id } = await server.start("counted", { n: 7 });
    const worker = await start([of(z.object({ n: z.number().max(5).default(4) }))]);
    const error = expect.stringContaining("The input of workflow counted does not fit its schema: n: ");
    expect(await server.result(id)).toMatchObject({ state: "failed", error });
    await worker.stop();
  });

  it("has a failed step when the input of a child run does not fit", async () => {
    const child = workflow("child", async (_w, { n }) => n, { input: z.object({ n: z.number() }) });
    const { server, run } = await setup([child]);
    await server.define(child);
    const { worker, result } = await run(async (w) => w.run("child", { n: "one" }).catch((error: Error) => error.message));
    expect(await result()).toMatchObject({ state: "succeeded", output: expect.stringMatching(/does not fit its schema: n: expected/) });
    await worker.stop();
  });

  it("has the types of its steps", () => {
    const made = workflow("typed", async (w, input: { n: number }) => ({ twice: await w.step(double, input.n) }));
    expectTypeOf(made).toEqualTypeOf<FunctionWorkflow<{ n: number }, { twice: number }>>();
    // @ts-expect-error: the task takes a number.
    workflow("wrong", async (w) => w.step(double, "4"));
  });

  it("starts only with an input that fits its schema, in process and over HTTP", async () => {
    const input = z.object({ n: z.number() });
    const made = workflow("checked", async (w, { n }) => w.step(double, n), { input });
    expectTypeOf(made).toEqualTypeOf<FunctionWorkflow<{ n: number }, number>>();
    const { server } = await setup();
    const worker = await work({ tasks: [double], workflows: [made], on: server, logger: false, signals: false });
    for (const client of [server, connect(server.url as string)]) {
      await expect(client.start(made, { n: "4" } as never)).rejects.toMatchObject({
        code: "LONGSHORE_BAD_INPUT",
        message: expect.stringMatching(/^The input of workflow checked does not fit its schema: n: /),
      });
      expect(await (await client.start(made, { n: 4 })).result()).toBe(8);
    }
    expect((await server.define(made)).version).toBe(1);
    await worker.stop();
  });

  it("catches the error of a step, with its name and attempt", async () => {
    const { run } = await setup();
    const { worker, result } = await run(async (w) => {
      try {
        await w.call("refuse", null, { retry: { limit: 1, backoff: { kind: "fixed", delayMs: 0 } } });
        return null;
      } catch (error) {
        if (!(error instanceof StepError)) throw error;
        return { step: error.step, attempt: error.attempt, code: error.code, cause: (error.cause as Error).message };
      }
    });
    expect((await result()).output).toEqual({ step: "refuse", attempt: 2, code: "LONGSHORE_TASK_FAILED", cause: "not today" });
    await worker.stop();
  });

  it("fails with the error that it throws, and its open steps are cancelled", async () => {
    const { run, steps } = await setup();
    const { id, worker, result } = await run(async (w) => {
      await Promise.all([w.call("nobody-has-this", null), w.step(refuse, undefined as never)]);
    });
    expect(await result()).toMatchObject({ state: "failed", error: "step refuse: not today" });
    expect((await steps(id)).map(({ state }: { state: string }) => state)).toEqual(["failed", "cancelled", "failed"]);
    await worker.stop();
  });

  it("runs a side effect once, and gives its value to the rest of the function", async () => {
    const { run } = await setup();
    let calls = 0;
    const { worker, result } = await run(async (w) => {
      const [one, two] = await Promise.all([w.local("one", () => ++calls), w.local("two", async () => 10 + ++calls)]);
      await w.step(double, 1);
      return { one, two, later: await w.local("three", () => calls) };
    });
    expect((await result()).output).toEqual({ one: 1, two: 12, later: 2 });
    expect(calls).toBe(2);
    await worker.stop();
  });

  it("starts a step at once while a side effect of the same turn still runs", async () => {
    const { run, steps } = await setup();
    const release = deferred<void>();
    const { id, worker, result } = await run(async (w) => {
      const [slow, fast] = await Promise.all([w.local("slow", () => release.promise.then(() => "slow")), w.step(double, 2)]);
      return [slow, fast];
    });
    await holds(async () => expect((await steps(id)).find(({ id: step }: { id: string }) => step === "double")?.state).toBe("done"));
    release.resolve();
    expect((await result()).output).toEqual(["slow", 4]);
    await worker.stop();
  });

  it("sleeps without a slot until its time", async () => {
    const { run, clock, steps } = await setup();
    const { id, worker, result } = await run(async (w) => {
      const before = w.now().getTime();
      await w.sleep("1m");
      return w.now().getTime() - before;
    });
    await holds(async () => expect((await steps(id)).at(-1)?.id).toBe("sleep"));
    expect(worker.status().running).toEqual([]);
    await clock.advance(60_000);
    expect(((await result()).output as number) >= 60_000).toBe(true);
    await worker.stop();
  });

  it("receives signals in order, also signals that were sent before it waited", async () => {
    const { run, api, steps } = await setup();
    const { id, worker, result } = await run(async (w) => {
      await w.step(double, 1);
      const got: unknown[] = [];
      for await (const value of w.signals("item")) {
        if (value === "end") return got;
        got.push(value);
      }
      return null;
    });
    await api("POST", `/runs/${id}/signals`, { name: "item", value: 1 });
    await holds(async () => expect((await steps(id)).length).toBeGreaterThan(2));
    await api("POST", `/runs/${id}/signals`, { name: "item", value: { two: 2 } });
    await api("POST", `/runs/${id}/signals`, { name: "item", value: "end" });
    expect((await result()).output).toEqual([1, { two: 2 }]);
    await worker.stop();
  });

  it("waits for another signal when a value does not fit the schema, and logs the field", async () => {
    const { run, api, steps } = await setup();
    const schema = z.object({ ok: z.boolean() });
    const { id, worker, result } = await run(async (w) => w.signal("approve", { schema }));
    await api("POST", `/runs/${id}/signals`, { name: "approve", value: { ok: "yes" } });
    await holds(async () => expect((await steps(id)).at(-1)?.id).toBe("approve-2"));
    await api("POST", `/runs/${id}/signals`, { name: "approve", value: { ok: true } });
    expect(await result()).toMatchObject({ state: "succeeded", output: { ok: true } });
    await worker.stop();
    const { items } = (await api("GET", `/runs/${id}/logs`)).body;
    expect(items).toMatchObject([{ data: expect.stringMatching(/The value of signal approve does not fit its schema: ok: /) }]);
  });

  it("keeps the time limit of a signal when values that do not fit arrive", async () => {
    const { run, api, clock, steps } = await setup();
    const schema = z.object({ ok: z.boolean() });
    const { id, worker, result } = await run(async (w) => {
      try {
        return await w.signal("approve", { schema, timeout: "2m" });
      } catch (error) {
        return (error as StepError).code;
      }
    });
    await holds(async () => expect((await steps(id)).at(-1)?.id).toBe("approve"));
    await clock.advance(90_000);
    await api("POST", `/runs/${id}/signals`, { name: "approve", value: "yes" });
    await holds(async () => expect((await steps(id)).at(-1)?.id).toBe("approve-2"));
    await clock.advance(30_000);
    expect((await result()).output).toBe("LONGSHORE_DEADLINE");
    await worker.stop();
  });

  it("gets an error when a signal does not arrive in time", async () => {
    const { run, clock, steps } = await setup();
    const { id, worker, result } = await run(async (w) => {
      try {
        return await w.signal("approve", { timeout: "2m" });
      } catch (error) {
        return (error as StepError).code;
      }
    });
    await holds(async () => expect((await steps(id)).at(-1)?.id).toBe("approve"));
    await clock.advance(120_000);
    expect((await result()).output).toBe("LONGSHORE_DEADLINE");
    await worker.stop();
  });

  it("runs children of every kind, and defines those that the server does not have", async () => {
    const inner = workflow("inner", async (w, n: number) => w.step(double, n));
    const flat = graph("flat", (g, input) => g.step(double, input as never), { on: { event: "flat.wanted" } });
    const admin = await setup([inner]);
    const { worker, result } = await admin.run(async (w) => [await w.run(inner, 5), await w.run(flat, 6), await w.run<number>("flat", 7)]);
    expect((await result()).output).toEqual([10, 12, 14]);
    await worker.stop();
    const missing = await admin.run(async (w) => w.run("nowhere", null).catch((error: StepError) => error.message));
    expect((await missing.result()).output).toMatch(/workflow nowhere: there is no workflow nowhere/);
    await missing.worker.stop();
  });

  it("can run another one by name on a server in the same process, also one that only `uses` names", async () => {
    const { server } = await setup();
    const inner = workflow("inner", async (w, n: number) => w.step(double, n));
    const middle = workflow("middle", async (w, n: number) => w.run(inner, n), { uses: [inner] });
    const outer = workflow("outer", async (w, n: number) => w.run(middle, n));
    const worker = await work({ tasks: [double], workflows: [outer, middle], on: server, logger: false, signals: false });
    expect(await (await server.start(outer, 3)).result()).toBe(6);
    await worker.stop();
  });

  it("shows values to clients, and continues as another pass with an empty journal", async () => {
    const { run, steps, api } = await setup();
    const { id, worker, result } = await run(
      async (w, input: never) => {
        const { left, sum } = input as { left: number; sum: number };
        const more = sum + (await w.step(double, left));
        w.set("left", left - 1);
        if (left === 1) return more;
        return w.continueAs({ left: left - 1, sum: more });
      },
      { left: 3, sum: 0 },
    );
    expect((await result()).output).toBe(12);
    expect((await steps(id)).map(({ id: step }: { id: string }) => step)).toEqual(["it", "double"]);
    expect((await api("GET", `/runs/${id}`)).body).toMatchObject({ state: "succeeded", variables: { left: 0 } });
    await worker.stop();
  });

  it("gives the same time, numbers and ids in every replay", async () => {
    const { run, start, server, clock } = await setup();
    const seen: unknown[] = [];
    const body: Body = async (w) => {
      const values = [w.now().getTime(), w.random(), w.uuid(), w.runId];
      await w.step(double, 1);
      seen.push([...values, w.now().getTime(), w.random()]);
      await w.call("late", null);
      return values;
    };
    const { worker, id } = await run(body);
    await holds(() => expect(seen.length).toBe(1));
    await worker.stop();
    // A turn first waits for the worker that has the function in memory.
    await clock.advance(50_000);
    const other = await start([workflow("it", body as never)]);
    const late = await work({ tasks: [task("late", async () => null)], on: server, logger: false, signals: false });
    expect((await server.result(id)).state).toBe("succeeded");
    expect(seen.length).toBe(2);
    expect(seen[1]).toEqual(seen[0]);
    await Promise.all([other.stop(), late.stop()]);
  });

  it("is blocked when its code does not match the journal, and continues after a retry with code that matches", async () => {
    const { run, start, server, api, steps, clock } = await setup();
    const { worker, id } = await run(async (w) => [await w.step(double, 1), await w.call("late", null)]);
    await holds(async () => expect((await steps(id)).length).toBe(3));
    await worker.stop();
    // A turn first waits for the worker that has the function in memory.
    await clock.advance(50_000);
    const wrong = await start([workflow("it", async (w) => [await w.call("other", 1), await w.call("late", null)])]);
    const late = await work({ tasks: [task("late", async () => "late")], on: server, logger: false, signals: false });
    await holds(async () => expect((await api("GET", `/runs/${id}`)).body.state).toBe("blocked"));
    expect((await api("GET", `/runs/${id}`)).body.error).toBe(
      "The code does not match the journal at command 1: the journal has step double, the code asks for step other now.",
    );
    await wrong.stop();
    const right = await start([workflow("it", async (w) => [await w.step(double, 1), await w.call("late", null), "mended"])]);
    await api("POST", `/runs/${id}/retry`);
    expect(await server.result(id)).toMatchObject({ state: "succeeded", output: [2, "late", "mended"] });
    await Promise.all([right.stop(), late.stop()]);
  });

  it("retries from the step that failed, and keeps what succeeded before it", async () => {
    const admin = await setup();
    const { server, clock, api } = admin;
    let isBroken = true;
    const calls: string[] = [];
    const flaky = task("flaky", async () => {
      calls.push("flaky");
      if (isBroken) throw new Error("broken");
      return "mended";
    });
    const counted = task("counted", async () => calls.push("counted"));
    const made = workflow("flow", async (w) => {
      await w.step(counted, undefined as never);
      const local = await w.local("here", () => calls.push("here"));
      return [await w.step(flaky, undefined as never), local];
    });
    const worker = await work({ tasks: [flaky, counted], workflows: [made], on: server, clock, logger: false, signals: false });
    const { id } = await server.start(made as Workflow, null);
    expect(await server.result(id)).toMatchObject({ state: "failed", error: "step flaky: broken" });
    isBroken = false;
    await api("POST", `/runs/${id}/retry`);
    expect(await server.result(id)).toMatchObject({ state: "succeeded", output: ["mended", 2] });
    expect(calls).toEqual(["counted", "here", "flaky", "flaky"]);
    await worker.stop();
  });

  it("gets the advice to use w.local when it waits for something that is not a command", async () => {
    const { run, api } = await setup();
    const { id, worker } = await run(async () => new Promise(() => {}));
    await holds(async () => expect((await api("GET", `/runs/${id}`)).body).toMatchObject({ state: "blocked" }));
    expect((await api("GET", `/runs/${id}`)).body.error).toMatch(/waits for something that is not a command.*w\.local/);
    await worker.stop();
  });

  it("keeps the version of a change that applied when the run reached it", async () => {
    const { run, start, server, steps, clock } = await setup();
    const { worker, id } = await run(async (w) => [await w.step(double, 1), await w.call("late", null)]);
    await holds(async () => expect((await steps(id)).length).toBe(3));
    await worker.stop();
    // A turn first waits for the worker that has the function in memory.
    await clock.advance(50_000);
    const changed: Body = async (w) => {
      const version = w.version("twice", 1);
      const first = await w.step(double, 1);
      const again = version >= 1 ? await w.step(double, first) : first;
      return [again, await w.call("late", null), w.version("twice", 1)];
    };
    const other = await start([workflow("it", changed as never)]);
    const late = await work({ tasks: [task("late", async () => "late")], on: server, logger: false, signals: false });
    expect((await server.result(id)).output).toEqual([2, "late", 0]);
    const fresh = await server.start("it", null);
    expect((await server.result(fresh.id)).output).toEqual([4, "late", 1]);
    await Promise.all([other.stop(), late.stop()]);
  });

  it("ends when its run is cancelled, and running side effects are notified", async () => {
    const { run, api, server } = await setup();
    const started = deferred<void>();
    const aborted = deferred<void>();
    const { id, worker } = await run(async (w) =>
      w.local("long", async (signal) => {
        started.resolve();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        aborted.resolve();
      }),
    );
    await started.promise;
    await api("POST", `/runs/${id}/cancel`);
    expect((await server.result(id)).state).toBe("cancelled");
    await worker.stop({ force: true });
    await aborted.promise;
  });

  it("runs over HTTP, from memory and from its journal", async () => {
    const { server, clock, steps, api } = await setup();
    const on = () => workflowGraph(server.url as string, { workerId: "w" });
    const body: Body = async (w, input: never) => {
      const first = await w.step(double, input as number);
      const here = await w.local("here", () => first + 1);
      await w.signal("go");
      return { here, all: await w.map([1, 2, 3], double), big: await w.call<string>("long", null) };
    };
    const long = task("long", async () => "x".repeat(40_000));
    const made = workflow("far", body as never);
    const options = { tasks: [double, long], workflows: [made], clock, logger: false as const, signals: false as const };
    const one = await work({ ...options, on: on() });
    const { id } = await server.start(made as Workflow, 20);
    await holds(async () => expect((await steps(id)).at(-1)?.id).toBe("go"));
    await one.stop();
    // A turn first waits for the worker that has the function in memory.
    await clock.advance(50_000);
    const two = await work({ ...options, on: on() });
    await api("POST", `/runs/${id}/signals`, { name: "go" });
    expect((await server.result(id)).output).toEqual({ here: 41, all: [2, 4, 6], big: "x".repeat(40_000) });
    await two.stop();
  });
});

describe("replay()", () => {
  it("checks code against the journal of a run, without running side effects", async () => {
    const { run, api } = await setup();
    const { id, worker, result } = await run(async (w) => [await w.step(double, 1), await w.local("here", () => 5)]);
    await result();
    await worker.stop();
    const { body: journal } = await api("GET", `/runs/${id}/journal`);
    expect(journal.entries).toMatchObject([
      { node: 1, command: "step double", result: { place: 1, output: 2 } },
      { command: "local here" },
    ]);
    const same = workflow("it", async (w) => [await w.step(double, 1), await w.local("here", () => expect.unreachable())]);
    expect(await replay(journal, same)).toEqual({ state: "done", commands: 2 });
    const longer = workflow("it", async (w) => [
      await w.step(double, 1),
      await w.local("here", () => 1),
      await w.local("more", () => expect.unreachable()),
    ]);
    expect(await replay(journal, longer)).toEqual({ state: "waiting", commands: 2 });
    const other = workflow("it", async (w) => w.sleep("1s"));
    await expect(replay(journal, other)).rejects.toThrow(/command 1: the journal has step double, the code asks for sleep now/);
    const shorter = workflow("it", async (w) => w.step(double, 1));
    await expect(replay(journal, shorter)).rejects.toThrow(/command 2: the journal has local here, the code has ended/);
  });
});

describe("workflow()", () => {
  it("refuses a function that is not async, and names graph()", () => {
    expect(() => workflow("plain", (() => 5) as never)).toThrow(/plain.*not async.*graph\(\)/);
  });

  it("refuses a name that cannot be a lane", () => {
    expect(() => workflow("a b", async () => null)).toThrow(/"a b" is not usable/);
  });

  it("is refused by a transport that does not support functions", async () => {
    const { conductor } = await import("./protocols/conductor/worker/index.ts");
    const made = workflow("order", async () => null);
    await expect(work({ tasks: [], workflows: [made], on: conductor("http://127.0.0.1:1/api"), signals: false })).rejects.toThrow(
      /cannot run durable functions \(order\)/,
    );
  });
});
