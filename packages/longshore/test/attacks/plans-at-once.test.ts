// The attacker holds a read token and reads a run of a large definition whose plan is not in memory, for example after a restart. The plan
// was compiled in one piece: with 10,000 steps, all other requests waited for 130 ms each time. The test counts large definitions that are
// compiled in one piece.

import { expect, it, onTestFinished } from "vitest";
import { atOnceCharsMax } from "../../src/engine/run/plan.ts";
import { plainDialects } from "../../src/server/protocols.ts";
import { openEnginePort } from "../support/engine-port.ts";
import { call } from "../support/http.ts";
import { temporaryFolder } from "../support/parts.ts";

const steps = Array.from({ length: 800 }, (_, at) => ({ id: `step-${at}`, task: "work", input: null }));
const source = JSON.stringify({ name: "wide", steps, output: null });

/**
 * A server on this folder that has not compiled anything yet. `atOnce` counts large definitions that are compiled in one piece, `slices` the
 * others.
 */
async function open(directory: string) {
  const counted = { atOnce: 0, inSlices: 0 };
  const dialects = (await plainDialects()).map((dialect) => ({
    ...dialect,
    compile(given: string) {
      if (given.length > atOnceCharsMax) counted.atOnce++;
      return dialect.compile(given);
    },
    compileInSlices(given: string) {
      counted.inSlices++;
      return dialect.compileInSlices?.(given) as NonNullable<ReturnType<NonNullable<typeof dialect.compileInSlices>>>;
    },
  }));
  const { engine, url, close } = await openEnginePort({ directory, dialects });
  return { engine, counted, close, url: `${url}/api/longshore/v1` };
}

it("no read compiles a large definition in one piece", async () => {
  const directory = temporaryFolder();
  const first = await open(directory);
  await first.engine.runs.define({ name: "wide", dialect: "code", source });
  const { run } = await first.engine.runs.start({ workflow: "wide", input: "null" });
  await first.close();
  const of = `/runs/${run.id}`;
  const reads = [
    `${of}/graph`,
    `${of}/timeline`,
    `${of}/steps`,
    `${of}/tasks`,
    `${of}/logs`,
    "/tasks",
    "/definitions/wide",
    `/tasks/${run.id}.0`,
  ];
  for (const path of [...reads, `/history${of}`, `/history/tasks/${run.id}.0`]) {
    const { counted, url, close } = await open(directory);
    try {
      expect([path, (await call(url + path)).status]).toEqual([path, 200]);
      expect({ path, ...counted }).toEqual({ path, atOnce: 0, inSlices: 1 });
    } finally {
      await close();
    }
  }
}, 60_000);

it("a definition that this server cannot compile does not hide tasks of other definitions", async () => {
  const { engine, url, close } = await open(temporaryFolder());
  onTestFinished(close);
  await engine.runs.define({ name: "wide", dialect: "code", source });
  await engine.runs.start({ workflow: "wide", input: "null" });
  const { definitions } = engine.store.runs;
  const { planNow } = definitions;
  definitions.planNow = () => {
    throw new Error("It is of a newer version.");
  };
  onTestFinished(() => {
    definitions.planNow = planNow;
  });
  const { status, text } = await call(`${url}/tasks`);
  expect([status, JSON.parse(text).items.length]).toEqual([200, 100]);
});
