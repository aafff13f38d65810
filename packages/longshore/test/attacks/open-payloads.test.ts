// The attacker starts runs with inputs of megabytes and leaves them open, or holds tasks with such inputs. Rows of open runs and tasks stay
// in memory. Only their number was limited: a few hundred of these ended the process, and the next process at its start.

import { describe, expect, it } from "vitest";
import { openParts, type Parts, places } from "../support/parts.ts";

/** Forty of them have more characters than one table keeps in memory. */
const input = JSON.stringify("x".repeat(1_000_000));
const count = 40;
const keptCharsMax = 33_554_432;

async function postAll({ board }: Parts): Promise<void> {
  for (let at = 0; at < count; at++) {
    await board.post([{ id: `task-${at}`, step: "alone", lanes: [{ name: "work", labels: [] }], input, policy: null }]);
  }
}

async function claimAll(parts: Parts) {
  const tasks = [];
  for (let at = 0; at < count; at++) tasks.push(await parts.claim("w"));
  return tasks;
}

describe.each(places)("with %s", (place) => {
  it("open runs have a limited number of characters in memory", async () => {
    const parts = await openParts(place);
    await parts.define("large", ["only"]);
    const runs = [];
    for (let at = 0; at < count; at++) runs.push(await parts.start("large", { input }));
    expect(parts.runs.runs.keptChars).toBeLessThanOrEqual(keptCharsMax);
    for (const { id } of runs) expect((await parts.runs.run(id))?.input).toBe(input);
    for (const _run of runs) await parts.complete(await parts.claim("w"));
    expect(parts.runs.runs.keptChars).toBe(0);
  });

  it("open tasks have a limited number of characters in memory, and each is handed out with its complete input", async () => {
    const parts = await openParts(place);
    await postAll(parts);
    expect(parts.board.tasks.keptChars).toBeLessThanOrEqual(keptCharsMax);
    const tasks = await claimAll(parts);
    expect(tasks.map((task) => task.input.length)).toEqual(tasks.map(() => input.length));
    expect(parts.board.tasks.keptChars).toBeLessThanOrEqual(keptCharsMax);
    for (const task of tasks) await parts.complete(task, input);
    expect(parts.board.tasks.keptChars).toBe(0);
  });

  it("a task whose texts are not in memory is renewed, deferred and read like any other", async () => {
    const parts = await openParts(place);
    await postAll(parts);
    const last = (await claimAll(parts)).at(-1);
    if (last === undefined) throw new Error("Nothing was claimed.");
    const { id: taskId, grant } = last;
    await parts.clock.advance(1_000);
    const { holdUntil } = await parts.board.extend({ taskId, grant });
    expect(holdUntil).toBe((last.holdUntil ?? 0) + 1_000);
    expect(await parts.board.task(taskId)).toEqual({ ...last, holdUntil });
    await parts.board.extend({ taskId, grant }, { output: '"so far"' });
    expect(await parts.board.task(taskId)).toMatchObject({ input, output: '"so far"' });
    await parts.board.settle({ verb: "defer", hold: { taskId, grant }, delayMs: 0 });
    expect(await parts.claim("v")).toMatchObject({ id: taskId, holder: "v", input, output: '"so far"' });
  });
});

it("a restart reads no texts of held tasks, and each task has its texts when they are needed", async () => {
  const before = await openParts("a file");
  await postAll(before);
  const tasks = await claimAll(before);
  await before.close();
  const parts = await openParts("a file", before);
  await parts.board.recover();
  expect(parts.board.tasks.keptChars).toBe(0);
  const { id: taskId, grant } = tasks[0] as (typeof tasks)[number];
  expect(await parts.board.task(taskId)).toMatchObject({ input, state: "held" });
  expect((await parts.board.extend({ taskId, grant })).verdict).toBe("ok");
  await parts.complete(tasks[0] as (typeof tasks)[number]);
  expect(await parts.board.task(taskId)).toMatchObject({ input, state: "done" });
});
