// Tests the fault test itself: the same worker, client and checker that test the real server test a model with one defect at a time.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readRun } from "./api.ts";
import { check, describeViolations } from "./checker.ts";
import { type Client, openClient } from "./client.ts";
import { readHistory } from "./history.ts";
import type { Defect } from "./model-board.ts";
import { startModelServer } from "./model-server.ts";
import { runWorker } from "./raw-worker.ts";
import { chain, diamond, fanOutAndIn } from "./shapes.ts";
import type { RuleName, Violation } from "./violation.ts";

/** When nothing was handed out or reported for several terms of the longest lease, a run that has not ended never will. */
const STUCK_MS = 3_000;
/**
 * Chance and the load of the machine decide whether a worker sleeps, fails or repeats a report at the right time. So the test may play more
 * runs.
 */
const ROUNDS_MAX = 8;
/** A round takes two seconds on an idle machine. */
const TEST_MS_MAX = 240_000;

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

/** The checker's findings after one round, or after as many rounds as are needed to find the broken rule. */
async function judge(defect: Defect, looksFor?: RuleName): Promise<Violation[]> {
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
  const violations = async (): Promise<Violation[]> => check(readHistory(directory), await client.readFinal(runIds));
  for (let round = 0; round < (looksFor === undefined ? 1 : ROUNDS_MAX); round++) {
    const started: string[] = [];
    for (let times = 0; times < 4; times++) for (const workflow of workflows) started.push(await client.start(workflow));
    for (const runId of started.slice(-2)) await client.cancel(runId);
    runIds.push(...started);
    await untilStill(server, client, started);
    if (looksFor !== undefined && (await violations()).some(({ rule }) => rule === looksFor)) break;
  }
  // Sleeping workers also report after the end of their run, and the checker must see those responses.
  stopping.abort();
  await Promise.all(workers);
  const found = await violations();
  client.close();
  await server.close();
  rmSync(directory, { recursive: true });
  return found;
}

/** Resolves when the runs have ended, or when nothing changes any more. */
async function untilStill(server: { moves(): number }, client: Client, runIds: readonly string[]): Promise<void> {
  for (let moves = -1; moves !== server.moves(); ) {
    moves = server.moves();
    await client.untilEnded(runIds, STUCK_MS);
    const runs = await Promise.all(runIds.map((runId) => readRun(client.connection, runId)));
    if (runs.every((run) => run === undefined || run.ended)) return;
  }
}

describe("the fault test on a model server", () => {
  it.concurrent(
    "reports nothing for a server that keeps every promise",
    async () => {
      expect(describeViolations(await judge("none"))).toBe("");
    },
    TEST_MS_MAX,
  );

  it.concurrent.each(CAUGHT)(
    "detects a server that %s",
    async (defect, rule) => {
      const violations = await judge(defect, rule);
      expect(violations.map((found) => found.rule)).toContain(rule);
      expect(violations.find((found) => found.rule === rule)?.message).not.toBe("");
    },
    TEST_MS_MAX,
  );
});
