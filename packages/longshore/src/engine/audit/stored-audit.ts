// Reads the audit from its rows, newest first: also on a server that does not own the data.

import { wholeRow } from "../../core/slices/slices.ts";
import type { Scan } from "../rows.ts";
import { allRows, type ReadDeps } from "../sliced-reads.ts";
import { auditTable } from "../tables/audit.ts";
import type { AuditEntry, AuditPage, AuditQuery, AuditReader } from "./audit.ts";

/** Entries that are read without a pause. */
const rowsAtOnce = 200;
/** Entries that one page visits: with a filter that nothing matches, a page is empty and has a next. */
const visitedMax = 5_000;

export function storedAudit(deps: ReadDeps): AuditReader {
  const rows = deps.store.table(auditTable);
  return {
    async page(query): Promise<AuditPage> {
      const items: AuditEntry[] = [];
      let before = query.before ?? Number.MAX_SAFE_INTEGER;
      for (let visited = 0; visited < visitedMax; visited += rowsAtOnce) {
        await deps.slices.turn(rowsAtOnce * wholeRow);
        const some = await allRows(deps, rows, { ...scanOf(query), below: [before], backwards: true, limit: rowsAtOnce });
        for (const entry of some) {
          if (query.since !== undefined && entry.at < query.since) return { items, next: null };
          if (!matches(entry, query)) continue;
          // Only an entry beyond the page shows that there is a next one.
          if (items.length === query.limit) return { items, next: items.at(-1)?.number ?? null };
          items.push(entry);
        }
        const last = some.at(-1);
        if (last === undefined || some.length < rowsAtOnce) return { items, next: null };
        before = last.number;
      }
      return { items, next: before };
    },
  };
}

/** The index that leaves the fewest entries to visit. */
function scanOf({ kind, target, caller }: AuditQuery): Scan {
  if (kind !== undefined && target !== undefined) return { by: ["kind", "target", "number"], equal: [kind, target] };
  if (caller !== undefined) return { by: ["caller", "number"], equal: [caller], having: "caller" };
  return { by: ["number"] };
}

function matches(entry: AuditEntry, { kind, target, caller, verb, until }: AuditQuery): boolean {
  if (kind !== undefined && entry.kind !== kind) return false;
  if (target !== undefined && entry.target !== target) return false;
  if (caller !== undefined && entry.caller !== caller) return false;
  if (verb !== undefined && entry.verb !== verb) return false;
  return until === undefined || entry.at <= until;
}
