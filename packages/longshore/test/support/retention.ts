// A store with a few runs, tasks, logs and blobs, and the retention that prunes it.

import { LocalBlobs } from "../../src/engine/blob/local-blobs.ts";
import { BlobReferences } from "../../src/engine/blob/references.ts";
import { LocalLogs } from "../../src/engine/log/local-logs.ts";
import { LocalParts } from "../../src/engine/part/local-parts.ts";
import { LocalRetention } from "../../src/engine/run/local-retention.ts";
import type { RetentionPolicy } from "../../src/engine/run/retention.ts";
import { BlobFiles } from "../../src/store/sqlite/blob-files.ts";
import { openParts, type Parts, type Place } from "./parts.ts";

export const dayMs = 86_400_000;
/** A policy that removes nothing. */
export const forever = { ageMs: 1_000 * dayMs, count: Number.POSITIVE_INFINITY };
const keepAll: RetentionPolicy = { runs: forever, tasks: forever, logs: forever, blobs: forever, audit: forever };

const tables = [
  "run",
  "task",
  "attempt",
  "node_join",
  "run_key",
  "log",
  "part",
  "part_uid",
  "part_read",
  "blob",
  "pruned",
  "signal",
] as const;

/** `before` reopens the store of an earlier setup. */
export async function setup(place: Place, before?: Parts) {
  const parts = await openParts(place, before);
  const blobs = new LocalBlobs({ ...parts, contents: new BlobFiles(`${parts.folder}/blobs`) });
  const logs = new LocalLogs(parts);
  const rowsOf = { runs: parts.runs.runs, tasks: parts.board.tasks };
  const streams = new LocalParts({ ...parts, tasks: parts.board.tasks, first: () => false });
  parts.board.remains.onRemoved.add((ids) => streams.forget(ids));
  const { definitions, signals } = parts.runs;
  const references = new BlobReferences({ ...parts, ...rowsOf, definitions, signals, parts: streams, blobs });
  parts.onTask.add((task) => references.taskChanged(task));
  parts.onRun.add((run) => references.runChanged(run));
  const retention = new LocalRetention({ ...parts, ...rowsOf, blobs, references });
  const prune = (policy: Partial<RetentionPolicy>, signal?: AbortSignal) =>
    retention.prune({ ...keepAll, ...policy }, parts.clock.now(), signal);
  const rows = () =>
    Object.fromEntries(tables.map((table) => [table, Number(parts.db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows)]));
  const log = (taskId: string, runId: string | null, sequence = 0) =>
    logs.append({ taskId, runId, attempt: 0, grant: 1, chunks: [{ stream: "stdout", sequence, data: "a line\n", at: 0 }] });
  const post = async (id: string) => {
    await parts.board.post([{ id, step: "alone", lanes: [{ name: "work", labels: [] }], input: "null", policy: null }]);
    return parts.claim();
  };
  return { parts, blobs, references, streams, retention, prune, rows, log, post };
}

/** A task without a run, in a lane of its own name. */
export const newTask = (id: string, input: string) => ({ id, step: "alone", lanes: [{ name: id, labels: [] }], input, policy: null });
