// What was ordered for a run, by whom and why, from its creation to its end.

import { type Change, touchesRun } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import { href } from "../core/router.ts";
import type { AuditEntry, Page, Run } from "../core/shapes.ts";
import { Problem, Time } from "../ui/parts.tsx";
import { isOver, State } from "../ui/states.tsx";

/** The newest orders; more than a person gives to one run. */
const entriesMax = 200;

export const historyPath = (runId: string) => `/audit?kind=run&target=${encodeURIComponent(runId)}&limit=${entriesMax}`;

export function HistoryPane({ run }: { run: Run }) {
  const on = (change: Change) => touchesRun(change, run.id);
  const read = useApi<Page<AuditEntry>>(historyPath(run.id), { on });
  const entries = [...(read.data.value?.items ?? [])].reverse();
  const parent = run.parentTaskId?.slice(0, run.parentTaskId.lastIndexOf("."));
  return (
    <div class="run-data">
      <Problem error={read.error.value} />
      <ol class="history" aria-label="What happened to the run">
        <li>
          <Time at={run.createdAt} />
          <span>
            Created
            {parent === undefined || parent === "" ? "" : " by a step of "}
            {parent !== undefined && parent !== "" && <a href={href(["runs", parent])}>another run</a>}
          </span>
        </li>
        {entries.map(({ number, at, caller, via, verb, reason, became }) => (
          <li key={number}>
            <Time at={at} />
            <span>
              <strong>{verb}</strong> by {caller ?? "a caller without a token"} <span class="dim">({via})</span>
              {reason === null ? "" : `: ${reason}`}
              {became !== null && <code class="history-values">{valuesText(became)}</code>}
            </span>
          </li>
        ))}
        {run.endedAt !== null && isOver(run.state) && (
          <li>
            <Time at={run.endedAt} />
            <span>
              <State state={run.state} /> {run.retries > 0 ? `in its life number ${run.retries + 1}` : ""}
            </span>
          </li>
        )}
      </ol>
      {entries.length === 0 && read.data.value !== undefined && (
        <p class="dim">No order was given to this run but its start. Orders are kept in the audit for a while.</p>
      )}
    </div>
  );
}

function valuesText(values: NonNullable<AuditEntry["became"]>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${value}`)
    .join(", ");
}
