// A file below test/ makes the mistakes, because files of Longshore itself do not count as places of mistakes.

import { expect, it } from "vitest";
import { double } from "../../../test/support/functions.ts";
import { careless, type Made } from "../../../test/support/mistakes.ts";
import { watchMistakes } from "./mistakes.ts";
import { FunctionReplay } from "./replay.ts";
import { type FunctionScope, makeScope, seededRandom } from "./scope.ts";

const nothing = async () => ({ results: [], stop: true });

/** Separate globals, because all tests share those of this process. */
function globalsOf() {
  function OwnDate(...args: []) {
    return new.target === undefined ? Date() : Reflect.construct(Date, args);
  }
  OwnDate.now = () => 5;
  return {
    Date: OwnDate as unknown as DateConstructor,
    Math: { random: () => 0.5 } as Math,
    crypto: Object.create({ randomUUID: () => "id", getRandomValues: (into: unknown) => into }) as typeof crypto,
    fetch: (async () => new Response("ok")) as typeof fetch,
    performance: Object.create({ now: () => 7 }) as typeof performance,
    setImmediate: ((run: () => void) => run()) as never,
    setInterval: (() => 0) as never,
    setTimeout: ((run: () => void) => run()) as never,
  };
}

async function told(body: (w: FunctionScope, made: Made) => Promise<unknown>) {
  const globals = globalsOf();
  const lines: string[] = [];
  const watch = watchMistakes((line) => lines.push(line), globals);
  const { call } = watch({ name: "order", call: (w) => body(w, careless(globals)) });
  const replay = new FunctionReplay({ input: null, startedAt: 0, after: 0, journal: new Map() });
  const { signal: cancelled } = new AbortController();
  const w = makeScope({ runId: "r", replay, random: seededRandom("r"), cancelled, log: () => {} });
  await replay.begin(() => call(w, null as never));
  for (let node = 1; node < 10 && replay.end === null; node++) {
    await replay.settle(nothing);
    await replay.receive([{ node, place: replay.place + 1, state: "done", at: 0, output: null }]);
  }
  return { lines, end: replay.end };
}

it("names each mistake of a function once, with its place and what to use instead", async () => {
  const { lines, end } = await told(async (_w, made) => [...made.all(), ...made.all()].length);
  expect(end).toEqual({ kind: "done", output: 20 });
  const place = String.raw` at packages/longshore/test/support/mistakes\.ts:\d+:\d+`;
  const expected: [string, string][] = [
    ["Date.now()", "w.now()"],
    ["new Date()", "w.now()"],
    ["Date()", "w.now()"],
    ["performance.now()", "w.now()"],
    ["Math.random()", "w.random()"],
    ["crypto.randomUUID()", "w.uuid()"],
    ["setTimeout()", "w.sleep()"],
    ["setInterval()", "w.sleep()"],
    ["setImmediate()", "w.sleep()"],
    ["fetch()", "w.local(name, fn)"],
  ];
  expect(lines).toEqual(
    expected.map(([called, instead]) => {
      const exact = [called, instead].map((text) => text.replaceAll(/[().]/g, "\\$&"));
      return expect.stringMatching(new RegExp(`^The function order calls ${exact[0]}${place}: .*${exact[1]}\\.$`));
    }),
  );
});

it("watches helper functions, functions of maps, and code that runs after a result", async () => {
  const { lines } = await told(async (w, made) => {
    await w.step(double, 1);
    made.now();
    await w.map([1], async () => made.random());
    new made.Date(5);
  });
  expect(lines).toEqual([expect.stringContaining("Date.now()"), expect.stringContaining("Math.random()")]);
});

it("allows all of it in a side effect, except for calls of w", async () => {
  const { lines, end } = await told(async (w, made) => {
    await w.local("free", () => made.all().length);
    await w.local("nested", async () => {
      await Promise.resolve();
      return w.step(double, 1);
    });
  });
  expect(lines).toEqual([expect.stringMatching(/side effect nested of the function order calls w\.step\(\).*outside of w\.local/)]);
  expect(end).toMatchObject({ kind: "failed", error: expect.stringContaining("nested") });
});
