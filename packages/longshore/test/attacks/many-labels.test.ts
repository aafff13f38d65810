// The attacker holds a worker token and claims with hundreds of labels, different ones each time, while tasks wait in very many lanes. The
// cost of a claim and of a new task must not depend on the number of lanes or of waiting claims.

import { expect, it, onTestFinished } from "vitest";
import type { NewTaskRow } from "../../src/engine/board/store.ts";
import { openEngineWithStore } from "../support/engine.ts";

const lanesCount = 20_000;
/** The labels of one claim, as many as in the attack. */
const labelsCount = 901;
const holder = "attacker";

async function opened() {
  const engine = await openEngineWithStore({ directory: null });
  onTestFinished(() => engine.close());
  return engine;
}

function task(id: string, labels: string[]): NewTaskRow {
  return { id, step: "s", lanes: [{ name: "work", labels }], input: "null", policy: null };
}

it("the cost of claims with hundreds of labels depends on their labels, not on the number of lanes", async () => {
  const { board, store } = await opened();
  for (let at = 0; at < lanesCount; at += 1_000) {
    await board.post(Array.from({ length: 1_000 }, (_, one) => task(`t${at + one}`, [`l${at + one}`])));
  }
  const { lanes } = store.board;
  for (let claim = 0; claim < 300; claim++) {
    const labels = Array.from({ length: labelsCount }, (_, at) => `l${(at * 17 + claim * 31) % (2 * lanesCount)}`);
    const before = lanes.steps;
    await board.claim({ reach: { names: ["work"], labels }, holder, termMs: 60_000 });
    expect(lanes.steps - before).toBeLessThanOrEqual(2 * labelsCount);
  }
});

it("claims with as many names as labels find the same task as a claim with one name", async () => {
  const { board, store } = await opened();
  await board.post([task("t", ["l7"])]);
  const names = Array.from({ length: labelsCount }, (_, at) => `handler-${at}`);
  const reach = { names: [...names, "work"], labels: Array.from({ length: labelsCount }, (_, at) => `l${at}`) };
  const before = store.board.lanes.steps;
  expect((await board.claim({ reach, holder, termMs: 60_000 })).map(({ id }) => id)).toEqual(["t"]);
  expect(store.board.lanes.steps - before).toBeLessThanOrEqual(3 * labelsCount);
});

it("a new task is compared with a limited number of waiting claims, and further kinds of claims are refused", async () => {
  const { board, store } = await opened();
  const waits = Array.from({ length: 1_200 }, (_, at) =>
    board.claim({ reach: { names: ["work"], labels: [`own-${at}`] }, holder, termMs: 60_000, waitMs: 30_000 }).then(
      (tasks) => tasks.length,
      (error: Error) => error.message,
    ),
  );
  const refused = await Promise.race([waits[1_199], Promise.all(waits)]);
  expect(refused).toMatch("1000 different sets of names and labels wait for work");
  const { lanes } = store.board;
  const before = lanes.steps;
  await board.post([task("t", [])]);
  expect(lanes.steps - before).toBeLessThanOrEqual(1_000);
  expect(await waits[0]).toBe(1);
  board.dismiss();
  await Promise.all(waits);
});
