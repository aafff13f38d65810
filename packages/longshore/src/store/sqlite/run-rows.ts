// Runs and joins as rows.

import type { Join, Run, RunState } from "../../run/run.ts";
import type { GroupCommit } from "./commit.ts";
import type { Database, SqlRow } from "./driver.ts";
import { Rows } from "./rows.ts";

/** Open runs that stay in memory; others are read when something happens to them. */
const runsKeptMax = 20_000;

const columns = [
  ...["id", "workflow", "definition_id", "input", "created_at", "alias", "parent_task_id", "parent_attempt", "settings", "priority"],
  ...["root_id"],
  ...["state", "output", "error", "end_by", "active_count", "left_count", "failed_count", "recorded_count", "retries"],
  ...["counted_from", "variables", "backlog", "skips", "ended_at"],
];
const changing = columns.slice(columns.indexOf("state"));
/** A run that was open before has no `ended_at` on disk. Unwritten, it spares the index of open runs. */
const changingWhileOpen = changing.slice(0, -1);

export const runColumns: string = columns.join(", ");

export function runRows(db: Database, commit: GroupCommit, committed: (run: Run) => void): Rows<Run> {
  const select = db.prepare(`SELECT ${runColumns} FROM run WHERE id = ?`);
  // A run that begins anew is written whole, over its earlier self.
  const insert = db.prepare(
    `INSERT INTO run (${runColumns}) VALUES (${columns.map(() => "?").join(", ")})
     ON CONFLICT (id) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(", ")}`,
  );
  const updateOpen = db.prepare(updateSql(changingWhileOpen));
  const update = db.prepare(updateSql(changing));
  const remove = db.prepare("DELETE FROM run WHERE id = ?");
  return new Rows<Run>(commit, {
    load(id) {
      const row = select.get(id);
      return row === undefined ? null : runOf(row);
    },
    save(run, isNew, before) {
      const rest = [
        ...[run.state, run.output, run.error, run.endBy, run.active, run.left, run.failed, run.recorded, run.retries],
        ...[run.countedFrom, run.variables, run.backlog, run.skips],
      ];
      if (isNew) insert.run(...fixedValues(run), ...rest, run.endedAt);
      else if (run.endedAt === null && before?.endedAt === null) updateOpen.run(...rest, run.id);
      else update.run(...rest, run.endedAt, run.id);
    },
    remove: (id) => remove.run(id),
    chars: ({ input, output, variables }) => input.length + (output?.length ?? 0) + (variables?.length ?? 0),
    keep: (run) => (run.endedAt === null ? "while-room" : "no"),
    keptMax: runsKeptMax,
    committed,
  });
}

function updateSql(changed: readonly string[]): string {
  return `UPDATE run SET ${changed.map((column) => `${column} = ?`).join(", ")} WHERE id = ?`;
}

function fixedValues(run: Run): (string | number | null)[] {
  const { id, workflow, definitionId, input, createdAt, alias, parentTaskId, parentAttempt, settings, priority, rootId } = run;
  return [id, workflow, definitionId, input, createdAt, alias, parentTaskId, parentAttempt, settings, priority, rootId];
}

export function runOf(row: SqlRow): Run {
  return {
    id: row.id as string,
    workflow: row.workflow as string,
    definitionId: row.definition_id as string,
    state: row.state as RunState,
    input: row.input as string,
    output: row.output as string | null,
    error: row.error as string | null,
    createdAt: row.created_at as number,
    endedAt: row.ended_at as number | null,
    endBy: row.end_by as number | null,
    active: row.active_count as number,
    left: row.left_count as number,
    failed: row.failed_count as number,
    recorded: row.recorded_count as number,
    retries: row.retries as number,
    countedFrom: row.counted_from as number,
    priority: row.priority as number,
    variables: row.variables as string | null,
    settings: row.settings as string | null,
    backlog: row.backlog as string | null,
    skips: row.skips as string | null,
    alias: row.alias as string | null,
    parentTaskId: row.parent_task_id as string | null,
    parentAttempt: row.parent_attempt as number,
    rootId: row.root_id as string | null,
  };
}

export function joinKey(runId: string, node: number): string {
  return `${runId}.${node}`;
}

export function joinRows(db: Database, commit: GroupCommit): Rows<Join> {
  const select = db.prepare("SELECT left_count, begun, missed FROM node_join WHERE run_id = ? AND node = ?");
  const upsert = db.prepare("INSERT OR REPLACE INTO node_join (run_id, node, left_count, begun, missed) VALUES (?, ?, ?, ?, ?)");
  return new Rows<Join>(commit, {
    load(key) {
      const dot = key.lastIndexOf(".");
      const runId = key.slice(0, dot);
      const node = Number(key.slice(dot + 1));
      const row = select.get(runId, node);
      if (row === undefined) return null;
      return { runId, node, left: row.left_count as number, begun: row.begun === 1, missed: row.missed as number };
    },
    save: (join) => upsert.run(join.runId, join.node, join.left, join.begun ? 1 : 0, join.missed),
    keep: () => "no",
    keptMax: 0,
  });
}
