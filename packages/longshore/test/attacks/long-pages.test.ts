// The attacker holds a read token and requests the longest pages of lists, and a definition with thousands of steps. Each was written as one
// JSON text, which delayed all other requests for 20 to 40 ms. The test measures the longest text that is written in one piece, not time.

import { expect, it, onTestFinished, vi } from "vitest";
import { turnRows, wholeRead } from "../../src/core/slices/slices.ts";
import { sampleSource } from "../../src/protocols/workflow-graph/dialect/sample.ts";
import { dialectName } from "../../src/protocols/workflow-graph/dialect/source.ts";
import { openEnginePort } from "../support/engine-port.ts";
import { call } from "../support/http.ts";
import { temporaryFolder } from "../support/parts.ts";
import { callsInTurn } from "./counting-rows.ts";

const runs = 1_000;
const steps = 1_500;
/** Fifty items of some hundred characters, or one that is longer. */
const charsMax = 65_536;

async function started() {
  const { engine, url, close } = await openEnginePort({ directory: temporaryFolder() });
  onTestFinished(close);
  await engine.runs.define({ name: "sample", dialect: dialectName, source: sampleSource });
  const input = JSON.stringify({ text: "x".repeat(300) });
  await Promise.all(Array.from({ length: runs }, () => engine.runs.start({ workflow: "sample", input })));
  const wide = Array.from({ length: steps }, (_, at) => ({ id: `step-${at}`, task: "work", input: { text: "x".repeat(100) } }));
  await engine.runs.define({ name: "wide", dialect: "code", source: JSON.stringify({ name: "wide", steps: wide, output: null }) });
  const { run } = await engine.runs.start({ workflow: "wide", input });
  return { api: `${url}/api/longshore/v1`, wide: run.id };
}

/** The longest text that `JSON.stringify` returns. */
function longestWritten() {
  const written = { longest: 0 };
  const { stringify } = JSON;
  const spy = vi.spyOn(JSON, "stringify").mockImplementation(((...given: Parameters<typeof stringify>) => {
    const text = stringify(...given);
    written.longest = Math.max(written.longest, text?.length ?? 0);
    return text;
  }) as typeof stringify);
  onTestFinished(() => spy.mockRestore());
  return written;
}

it("no page of a list is written in one piece, and it has all items", async () => {
  const { api, wide } = await started();
  const written = longestWritten();
  for (const [path, items] of [
    ["/runs?limit=1000", 1_000],
    ["/runs?limit=1000&waiting=true", 1_000],
    ["/runs?view=summary&limit=1000", 1_000],
    ["/runs?view=summary&limit=1000&waiting=true", 1_000],
    ["/tasks?limit=1000", 1_000],
    [`/runs/${wide}/tasks?limit=1000`, 1_000],
    [`/runs/${wide}/steps?limit=1000`, 1_000],
    ["/definitions/wide", steps],
  ] as const) {
    written.longest = 0;
    const { status, text } = await call(`${api}${path}`);
    const { items: listed, steps: planned } = JSON.parse(text) as { items?: object[]; steps?: object[] };
    expect([path, status, (listed ?? planned)?.length]).toEqual([path, 200, items]);
    expect([path, written.longest > charsMax ? written.longest : "short texts"]).toEqual([path, "short texts"]);
  }
}, 60_000);

it("runs of a page are read in slices, each with its texts", async () => {
  const { engine, url, close } = await openEnginePort({ directory: temporaryFolder() });
  onTestFinished(close);
  await engine.runs.define({ name: "sample", dialect: dialectName, source: sampleSource });
  await Promise.all(Array.from({ length: runs }, () => engine.runs.start({ workflow: "sample", input: "{}" })));
  const read = callsInTurn(engine.store.runs.runs, "get");
  const { text } = await call(`${url}/api/longshore/v1/runs?limit=1000`);
  expect((JSON.parse(text) as { items: object[] }).items).toHaveLength(runs);
  expect(read.longest).toBeGreaterThan(0);
  // The first slice runs in the turn of the request, and the second at the end of that turn.
  expect(read.longest).toBeLessThanOrEqual((2 * turnRows) / wholeRead);
});
