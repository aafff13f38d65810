import { expect, expectTypeOf, it, onTestFinished } from "vitest";
import { task } from "./core/task.ts";
import { graph } from "./graph.ts";
import type { Ref } from "./reference.ts";
import { type Schedule, schedule } from "./schedule.ts";
import { serve } from "./server/index.ts";
import { TestClock } from "./testing/clock.ts";
import { work } from "./work.ts";

const greet = task("greet", async (input: { name: string; at?: string }) => `Hello, ${input.name}`);
const hello = graph("hello", (g, input: Ref<{ name: string; at?: string }>) => g.step(greet, input));

async function setup() {
  const clock = new TestClock(Date.parse("2026-03-28T12:00Z"));
  const server = await serve({ ephemeral: true, port: null, clock, logger: { level: "silent" } });
  onTestFinished(() => server.close());
  return { clock, server };
}

it("a schedule is defined with its workflow, and starts runs", async () => {
  const { clock, server } = await setup();
  const nightly = schedule("nightly", { cron: "30 2 * * *", timezone: "Europe/Berlin", workflow: hello, input: { name: "Ann" } });
  expectTypeOf(nightly).toEqualTypeOf<Schedule<{ name: string; at?: string }>>();
  const first = await server.define(nightly);
  // 02:30 does not exist on this day: clocks go from 02:00 to 03:00.
  expect(first).toEqual({ name: "nightly", created: true, nextAt: Date.parse("2026-03-29T01:00Z") });
  expect(await server.define(nightly)).toEqual({ ...first, created: false });
  const handled: unknown[] = [];
  const worker = await work({ tasks: [task("greet", async (input: { name: string }) => handled.push(input))], on: server });
  onTestFinished(() => worker.stop());
  await clock.advance((first.nextAt as number) - clock.now());
  await expect.poll(() => handled).toEqual([{ name: "Ann" }]);
});

it("the input of a schedule is checked and gets the time of the tick", async () => {
  const { server } = await setup();
  const given = schedule("s", { every: "1h", workflow: hello, input: { name: "Ann" }, tickField: "at" });
  expect(given.rules).toEqual({ every: "1h", workflow: "hello", tickField: "at" });
  await server.define(given);
  const wrong = schedule("s", { cron: "0 25 * * *", workflow: "hello" });
  await expect(server.define(wrong)).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT", detail: { field: "cron" } });
  const unknown = schedule("t", { at: new Date("2026-12-24T18:00Z"), workflow: "nothing" });
  await expect(server.define(unknown)).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
});

it("a schedule has a name and exactly one of cron, interval and time", () => {
  expect(() => schedule("s", { workflow: "w" } as never)).toThrow("none of cron, every and at");
  expect(() => schedule("s", { workflow: "w", cron: "* * * * *", every: "1m" } as never)).toThrow("cron and every");
  expect(() => schedule("", { workflow: "w", every: "1m" })).toThrow("no name");
});
