import { expect, it } from "vitest";
import { openParts } from "../../../test/support/parts.ts";
import { attemptsKeptMax } from "../board/task.ts";
import type { ReadTx } from "../tx.ts";
import { LocalHistory } from "./local-history.ts";

/** A store in memory reads synchronously. */
const tx: ReadTx = { isOperation: false, loaded: new Map() };

it("a page has at most as many child runs of a task as attempts of the task are kept", async () => {
  const parts = await openParts("memory");
  await parts.define("w", ["a", "b"]);
  const { id, definitionId } = await parts.start("w");
  const children = attemptsKeptMax + 500;
  parts.db.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${children})
    INSERT INTO run (id, workflow, definition_id, state, input, created_at, ended_at, left_count, failed_count, retries, parent_task_id, parent_attempt)
    SELECT 'child' || i, 'w', '${definitionId}', 'failed', 'null', 0, 1, 0, 1, 0, '${id}.0', i FROM n`);
  parts.db.exec(`UPDATE task SET attempt = ${children} WHERE id = '${id}.0'`);
  const history = new LocalHistory({ store: parts.store, nodeOf: () => ({ kind: "run" }), withParts: false });
  const page = history.runPage(tx, id, { after: `${id}.`, limit: 100 });
  expect(page?.children.at(-1)).toMatchObject({ runId: `child${children}`, attempt: children });
  expect(page?.children.length).toBeLessThanOrEqual(attemptsKeptMax + 1);
});

it("what a run has not decided yet is counted, except first parts, because the steps that produce them are open", async () => {
  const parts = await openParts("memory");
  await parts.define("w", ["a", "b"]);
  const { id } = await parts.start("w");
  const rest = { kind: "go-on", rest: { starts: [1], settled: [], wanted: [] } };
  const backlog = JSON.stringify([{ kind: "done", node: 0 }, { kind: "part", node: 1 }, rest]);
  parts.db.exec(`UPDATE run SET backlog = '${backlog}' WHERE id = '${id}'`);
  const history = new LocalHistory({ store: parts.store, nodeOf: () => ({ kind: "task" }), withParts: false });
  expect(history.runPage(tx, id, { after: `${id}.`, limit: 100 })).toMatchObject({ left: 2 });
});
