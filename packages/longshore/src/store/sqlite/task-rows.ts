// Tasks as rows: how they are read, written, and which of them stay in memory.

import type { LimitKey } from "../../board/limits.ts";
import type { Fault, Lane, Task, TaskState, Verb } from "../../board/task.ts";
import { LongshoreError } from "../../errors.ts";
import type { GroupCommit } from "./commit.ts";
import type { Database, SqlRow } from "./driver.ts";
import { Rows } from "./rows.ts";

/** Queued tasks whose payloads stay in memory; those of a longer backlog are read when they are claimed. */
const queuedKeptMax = 20_000;

const columns = [
  ...[
    "id",
    "run_id",
    "node",
    "step",
    "lane",
    "labels",
    "priority",
    "input",
    "policy",
    "limits",
    "hold_ms",
    "claim_ms",
    "end_ms",
    "posted_at",
    "total_by",
  ],
  ...[
    "state",
    "sequence",
    "attempt",
    "first_attempt",
    "ordinal",
    "grant_count",
    "holder",
    "term_ms",
    "output",
    "error",
    "fault",
    "failures",
    "lost",
    "deferrals",
    "attempt_at",
    "queued_at",
    "due_at",
  ],
  ...["started_at", "claimed_at", "claim_by", "hold_until", "end_by", "closed_grant", "closed_by", "closed_receipt", "ended_at"],
];
/** The first columns are written once; the rest change with the task's state. */
const changing = columns.slice(columns.indexOf("state"));
/** A task that has ended comes back only as a new row, so `ended_at` of an open one is null already. Unwritten, it spares both indexes. */
const changingWhileOpen = changing.filter((column) => column !== "ended_at");

export const taskColumns: string = columns.join(", ");

export function taskRows(db: Database, commit: GroupCommit, committed: (task: Task) => void): Rows<Task> {
  const select = db.prepare(`SELECT ${taskColumns} FROM task WHERE id = ?`);
  const insert = db.prepare(`INSERT OR REPLACE INTO task (${taskColumns}) VALUES (${columns.map(() => "?").join(", ")})`);
  const updateOpen = db.prepare(updateSql(changingWhileOpen));
  const end = db.prepare(updateSql(changing));
  const remove = db.prepare("DELETE FROM task WHERE id = ?");
  return new Rows<Task>(commit, {
    load(id) {
      const row = select.get(id);
      return row === undefined ? null : taskOf(row);
    },
    save(task, isNew) {
      refuseNul(task);
      if (isNew) insert.run(...fixedValues(task), ...openValues(task), task.endedAt);
      else if (task.endedAt === null) updateOpen.run(...openValues(task), task.id);
      else end.run(...openValues(task), task.endedAt, task.id);
    },
    remove: (id) => remove.run(id),
    // Who holds a task, and until when, may be newer in memory than on disk.
    keep: (task) => (task.endedAt !== null ? "no" : task.state === "queued" ? "while-room" : "always"),
    keptMax: queuedKeptMax,
    committed,
  });
}

function updateSql(changed: readonly string[]): string {
  return `UPDATE task SET ${changed.map((column) => `${column} = ?`).join(", ")} WHERE id = ?`;
}

/** SQLite's texts end at the first NUL when they are read back: a name cut like that would be another name. */
function refuseNul(task: Task): void {
  refuseNulIn(task.holder, "holder", task);
  refuseNulIn(task.id, "id", task);
  refuseNulIn(task.step, "step", task);
  if (task.lane !== null) refuseNulIn(task.lane.name, "lane", task);
}

function refuseNulIn(name: string | null, field: string, task: Task): void {
  if (name === null || !name.includes("\u0000")) return;
  const message = `The ${field} of task ${JSON.stringify(task.id)} is ${JSON.stringify(name)}, expected a text without the NUL character.`;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field, expected: "text without NUL" } });
}

type Value = string | number | null;

function fixedValues(task: Task): Value[] {
  return [
    task.id,
    task.runId,
    task.node,
    task.step,
    task.lane?.name ?? null,
    task.lane === null || task.lane.labels.length === 0 ? null : JSON.stringify(task.lane.labels),
    task.priority,
    task.input,
    task.policy,
    task.limits.length === 0 ? null : JSON.stringify(task.limits),
    task.holdMs,
    task.claimMs,
    task.endMs,
    task.postedAt,
    task.totalBy,
  ];
}

function openValues(task: Task): Value[] {
  return [
    task.state,
    task.sequence,
    task.attempt,
    task.firstAttempt,
    task.ordinal,
    task.grant,
    task.holder,
    task.termMs,
    task.output,
    task.error,
    task.fault,
    task.failures,
    task.lost,
    task.deferrals,
    task.attemptAt,
    task.queuedAt,
    task.dueAt,
    task.startedAt,
    task.claimedAt,
    task.claimBy,
    task.holdUntil,
    task.endBy,
    task.closedGrant,
    task.closedBy,
    task.closedReceipt,
  ];
}

const noLimits: readonly LimitKey[] = [];
const noLabels: readonly string[] = [];

export function taskOf(row: SqlRow): Task {
  const lane: Lane | null =
    row.lane === null
      ? null
      : { name: row.lane as string, labels: row.labels === null ? noLabels : (JSON.parse(row.labels as string) as string[]) };
  return {
    id: row.id as string,
    runId: row.run_id as string | null,
    node: row.node as number,
    step: row.step as string,
    lane,
    priority: row.priority as number,
    state: row.state as TaskState,
    sequence: row.sequence as number,
    attempt: row.attempt as number,
    firstAttempt: row.first_attempt as number,
    ordinal: row.ordinal as number,
    grant: row.grant_count as number,
    holder: row.holder as string | null,
    termMs: row.term_ms as number,
    input: row.input as string,
    output: row.output as string | null,
    error: row.error as string | null,
    fault: row.fault as Fault | null,
    failures: row.failures as number,
    lost: row.lost as number,
    deferrals: row.deferrals as number,
    policy: row.policy as string | null,
    limits: row.limits === null ? noLimits : (JSON.parse(row.limits as string) as LimitKey[]),
    holdMs: row.hold_ms as number | null,
    claimMs: row.claim_ms as number | null,
    endMs: row.end_ms as number | null,
    postedAt: row.posted_at as number,
    attemptAt: row.attempt_at as number,
    queuedAt: row.queued_at as number,
    dueAt: row.due_at as number,
    startedAt: row.started_at as number | null,
    claimedAt: row.claimed_at as number | null,
    endedAt: row.ended_at as number | null,
    claimBy: row.claim_by as number | null,
    holdUntil: row.hold_until as number | null,
    endBy: row.end_by as number | null,
    totalBy: row.total_by as number | null,
    closedGrant: row.closed_grant as number,
    closedBy: row.closed_by as Verb | null,
    closedReceipt: row.closed_receipt as string | null,
  };
}
