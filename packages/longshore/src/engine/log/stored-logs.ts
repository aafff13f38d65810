// Logs for a server that does not own the data: they are read from their rows. New lines reach a follower through the owner.

import type { Slices } from "../../core/slices/slices.ts";
import { NeedsOwner } from "../needs-owner.ts";
import type { RowStore } from "../rows.ts";
import { logHeadTable, logTable } from "../tables/log.ts";
import type { ReadRows } from "../tx.ts";
import { LogReads } from "./log-reads.ts";
import type { LogStore } from "./store.ts";

export function storedLogs({ store, read, slices }: { store: RowStore; read: ReadRows; slices: Slices }): LogStore {
  const reads = new LogReads({ rows: store.table(logTable), heads: store.table(logHeadTable), read, slices });
  return {
    append: () => Promise.reject(new NeedsOwner()),
    read: (taskId, { after = 0, limit }) => reads.ofTask(taskId, after, limit),
    since: (source, after, limit) => reads.since(source, after, limit),
    before: (source, before, limit) => reads.before(source, before, limit),
    lastLine: (taskId) => reads.lastLine(taskId),
  };
}
