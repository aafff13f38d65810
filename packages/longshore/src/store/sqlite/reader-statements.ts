// The SQL of the reader. Every statement walks an index, from the newest entry or from the one where the page before ended.

import { runColumns, runHeadColumns } from "../../engine/tables/run.ts";
import { headColumns } from "../../engine/tables/task.ts";
import { attemptBefore, attemptHead } from "./attempt-views.ts";
import type { Database, Statement } from "./driver.ts";

export type ReaderStatements = ReturnType<typeof prepareStatements>;

export function prepareStatements(db: Database) {
  const prepare = (sql: string): Statement => db.prepare(sql);
  return {
    newestRun: prepare(`SELECT ${runColumns} FROM run WHERE workflow = ? ORDER BY id DESC LIMIT 1`),
    openRunsOf: prepare(
      `SELECT id, created_at, settings FROM run WHERE workflow = ? AND ended_at IS NULL AND id < ? ORDER BY id DESC LIMIT ?`,
    ),
    runByAlias: prepare(`SELECT ${runColumns} FROM run WHERE alias = ? ORDER BY id DESC LIMIT 1`),
    runHead: prepare(`SELECT ${runHeadColumns} FROM run WHERE id = ?`),
    statesUnder: prepare("SELECT id, state FROM run WHERE id > ? AND id < ? ORDER BY id LIMIT ?"),
    child: prepare(`SELECT ${runColumns} FROM run WHERE parent_task_id = ? AND parent_attempt = ?`),
    openTasksAfter: prepare("SELECT id, state, lane FROM task INDEXED BY task_open WHERE ended_at IS NULL AND id > ? ORDER BY id LIMIT ?"),
    runs: prepare("SELECT id, state FROM run WHERE id < ? ORDER BY id DESC"),
    runsOf: prepare("SELECT id, state FROM run WHERE workflow = ? AND id < ? ORDER BY id DESC"),
    // Sorts the open runs, which are few beside those that ended. Left to itself SQLite would walk through all runs instead.
    openRuns: prepare("SELECT id, state FROM run INDEXED BY run_open WHERE ended_at IS NULL AND id < ? ORDER BY id DESC"),
    unsuccessfulRuns: prepare(
      "SELECT id, state FROM run WHERE state IN ('failed', 'cancelled', 'timed-out') AND state = ? AND id < ? ORDER BY id DESC",
    ),
    nodes: prepare("SELECT id, node FROM task WHERE id > ? AND id < ? ORDER BY id LIMIT ?"),
    heads: prepare(`SELECT ${headColumns} FROM task WHERE id > ? AND id < ? ORDER BY id LIMIT ?`),
    head: prepare(`SELECT ${headColumns} FROM task WHERE id = ?`),
    tasks: prepare("SELECT id, state, lane FROM task WHERE id < ? ORDER BY id DESC"),
    tasksOf: prepare("SELECT id, state, lane FROM task WHERE id > ? AND id < ? ORDER BY id DESC"),
    openTasks: prepare("SELECT id, state, lane FROM task WHERE ended_at IS NULL AND id < ? ORDER BY id DESC"),
    lastAttempt: prepare("SELECT * FROM attempt WHERE task_id = ? ORDER BY grant_count DESC, attempt DESC LIMIT 1"),
    lastError: prepare("SELECT error FROM attempt WHERE task_id = ? AND error IS NOT NULL ORDER BY grant_count DESC, attempt DESC LIMIT 1"),
    attemptBefore: prepare(attemptBefore("*")),
    attemptHeadBefore: prepare(attemptBefore(attemptHead)),
    names: prepare(
      "SELECT name FROM definition WHERE version = 1 AND (? IS NULL OR dialect = ?) AND name NOT LIKE '.%' ORDER BY created_at, name LIMIT ? OFFSET ?",
    ),
  };
}
