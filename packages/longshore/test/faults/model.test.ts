// Tries the proof itself: the same worker, client and checker that judge the real server judge a model that has one defect at a time.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { check, describeViolations } from "./checker.ts";
import { openClient } from "./client.ts";
import { readHistory } from "./history.ts";
import type { Defect } from "./model-board.ts";
import { startModelServer } from "./model-server.ts";
import { runWorker } from "./raw-worker.ts";
import { chain, diamond, fanOutAndIn } from "./shapes.ts";
import type { RuleName, Violation } from "./violation.ts";

/** Many terms of the shortest lease: on a loaded machine a lease is lost more often than the habits of the workers ask for. */
const END_MS_MAX = 30_000;
/** A defect may keep a run from ever ending; then there is no use in waiting as long. */
const STUCK_MS_MAX = 3000;

const CAUGHT: [Defect, RuleName][] = [
  ["accepts stale completions", "accepted-from-newest-hold"],
  ["hands out held tasks", "holds-never-overlap"],
  ["forgets completions", "acknowledged-completion-kept"],
  ["replaces outputs", "acknowledged-completion-kept"],
  ["forgets runs", "acknowledged-run-kept"],
  ["loses dependents", "every-run-ends"],
  ["ignores cancels", "no-start-after-cancel"],
  ["does not count failures", "acknowledged-failure-kept"],
  ["honours expired leases", "accepted-within-term"],
  ["loses log lines", "acknowledged-line-kept-once"],
  ["repeats log lines", "acknowledged-line-kept-once"],
  ["refuses repeats", "repeats-are-answered-alike"],
  ["starts dependents early", "dependencies-first"],
  ["skips steps", "success-is-complete"],
  ["starts runs twice", "one-run-a-start"],
];

async function judge(defect: Defect, endMsMax: number): Promise<Violation[]> {
  const directory = mkdtempSync(join(tmpdir(), "longshore-model-"));
  const server = await startModelServer(defect);
  const client = openClient(server.url, join(directory, "client.0.jsonl"));
  const stopping = new AbortController();
  const workers = [1, 2].map((number) => {
    const name = `worker-${number}`;
    const habits = {
      slots: 4,
      ttlSecs: 1,
      waitSecs: 0,
      workMs: [5, 120] as [number, number],
      failRate: 0.2,
      dozeRate: 0.1,
      repeatRate: 0.3,
      logRate: 0.5,
    };
    const settings = { url: server.url, name, history: join(directory, `${name}.0.jsonl`), seed: number, ...habits };
    return runWorker(settings, stopping.signal);
  });
  const workflows = await Promise.all([chain(3), diamond(), fanOutAndIn(3)].map((jobs) => client.create("model", jobs)));
  const runIds: string[] = [];
  for (let round = 0; round < 4; round++) for (const workflow of workflows) runIds.push(await client.start(workflow));
  for (const runId of runIds.slice(-2)) await client.cancel(runId);
  await client.untilEnded(runIds, endMsMax);
  // Workers that doze report after the end of their run as well, and the checker must see those answers.
  stopping.abort();
  await Promise.all(workers);
  const final = await client.readFinal(runIds);
  client.close();
  await server.close();
  const violations = check(readHistory(directory), final);
  rmSync(directory, { recursive: true });
  return violations;
}

describe("the proof, tried on a model server", () => {
  it.concurrent("finds nothing in a server that keeps every promise", async () => {
    expect(describeViolations(await judge("none", END_MS_MAX))).toBe("");
  });

  it.concurrent.each(CAUGHT)("catches a server that %s", async (defect, rule) => {
    const violations = await judge(defect, STUCK_MS_MAX);
    expect(violations.map((found) => found.rule)).toContain(rule);
    expect(violations.find((found) => found.rule === rule)?.message).not.toBe("");
  });
});
