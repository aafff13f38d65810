// Who ordered what: the audit with its filters, which are in the address.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, call, query } from "../core/api.ts";
import { now, timeText } from "../core/format.ts";
import { href, search, setQuery } from "../core/router.ts";
import type { AuditEntry, Page } from "../core/shapes.ts";
import { parseSpan } from "../core/span.ts";
import { Button, Empty, PageHead, Problem, Time } from "../ui/parts.tsx";
import { type Column, Table } from "../ui/table.tsx";

const kinds = ["run", "task", "queue", "worker", "limit", "schedule", "definition", "document", "bulk", "dead-letter"] as const;
const pageSize = 100;
/** A page of a filter that matches few entries may be empty. This number of pages is read before the user must ask for more. */
const emptyPagesMax = 20;

const columns: readonly Column<AuditEntry>[] = [
  { name: "When", width: "110px", cell: ({ at }) => <Time at={at} /> },
  {
    name: "Who",
    width: "minmax(90px, 1fr)",
    cell: ({ caller, via }) => <span class="strong">{caller ?? (via === "program" ? "program" : "no token")}</span>,
  },
  { name: "Order", width: "130px", cell: orderText },
  { name: "Of", width: "minmax(120px, 2fr)", cell: (entry) => <Target entry={entry} /> },
  { name: "Before", width: "minmax(100px, 2fr)", minor: true, cell: ({ was }) => <Values values={was} /> },
  { name: "After", width: "minmax(100px, 2fr)", minor: true, cell: ({ became }) => <Values values={became} /> },
  { name: "Reason", width: "minmax(80px, 2fr)", minor: true, cell: ({ reason }) => reason ?? "" },
];

export function AuditPage() {
  const kind = search.value.get("kind") ?? "";
  const target = search.value.get("target") ?? "";
  const caller = search.value.get("caller") ?? "";
  const since = search.value.get("since") ?? "";
  const rows = useSignal<readonly AuditEntry[]>([]);
  const next = useSignal<string | null | undefined>(undefined);
  const problem = useSignal<ApiError | null>(null);
  const key = [kind, target, caller, since].join(" ");
  const more = async (isFirst: boolean, gone?: AbortSignal) => {
    const span = parseSpan(since);
    const filters = { kind, target: kind === "" ? "" : target, caller, ...(span === undefined ? {} : { since: now.peek() - span }) };
    try {
      let before = isFirst ? undefined : next.peek();
      let found = isFirst ? [] : rows.peek();
      const wanted = found.length + 1;
      for (let page = 0; page < emptyPagesMax && before !== null && found.length < wanted; page++) {
        const read: Page<AuditEntry> = await call(
          `/audit${query({ ...filters, limit: pageSize, before })}`,
          gone === undefined ? {} : { signal: gone },
        );
        found = [...found, ...read.items];
        before = read.next;
      }
      if (gone?.aborted) return;
      rows.value = found;
      next.value = before ?? null;
      problem.value = null;
    } catch (error) {
      if (gone?.aborted !== true) problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    }
  };
  useEffect(() => {
    const gone = new AbortController();
    next.value = undefined;
    void more(true, gone.signal);
    return () => gone.abort();
  }, [key]);
  return (
    <div class="list-page">
      <PageHead title="Audit" note="Each order to a run, queue, worker, schedule or workflow: who gave it, and what it changed.">
        <Button icon="retry" label="Read again" onClick={() => void more(true)} />
      </PageHead>
      <div class="filters">
        <label class="inline-field">
          Of
          <select value={kind} onChange={(event) => setQuery({ kind: event.currentTarget.value })}>
            <option value="">everything</option>
            {kinds.map((one) => (
              <option key={one} value={one}>
                {kindWords[one] ?? one}
              </option>
            ))}
          </select>
        </label>
        <Filter label="Id or name" name="target" value={target} hint={kind === "" ? "Choose what it is first" : undefined} />
        <Filter label="Who" name="caller" value={caller} />
        <span class="filter-group" role="group" aria-label="Time">
          {["1h", "24h", "7d"].map((span) => (
            <Button
              key={span}
              label={`Last ${span}`}
              pressed={since === span}
              onClick={() => setQuery({ since: since === span ? null : span })}
            />
          ))}
        </span>
      </div>
      <Problem error={problem.value} />
      {next.value !== undefined && rows.value.length === 0 && (
        <Empty title={key.trim() === "" ? "No order was given yet." : "No order matches."}>
          {key.trim() === "" ? (
            <p>Starts of runs and reports of workers are not orders.</p>
          ) : (
            <Button label="Show all" onClick={() => setQuery({ kind: null, target: null, caller: null, since: null })} />
          )}
        </Empty>
      )}
      {rows.value.length > 0 && (
        <Table
          label="Orders"
          rows={rows.value}
          columns={columns}
          narrow={narrowRow}
          keyOf={({ number }) => String(number)}
          onEnd={() => void (next.peek() != null && more(false))}
        />
      )}
    </div>
  );
}

function Filter({ label, name, value, hint }: { label: string; name: string; value: string; hint?: string | undefined }) {
  return (
    <label class="inline-field">
      {label}
      <input
        value={value}
        disabled={hint !== undefined}
        title={hint}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
      />
    </label>
  );
}

function narrowRow(entry: AuditEntry) {
  return (
    <span class="narrow-row">
      <span class="strong">{entry.caller ?? (entry.via === "program" ? "program" : "no token")}</span>
      <span class="clip">{orderText(entry)}</span>
      <span class="dim">
        <Time at={entry.at} />
      </span>
      <span class="clip dim">
        <Target entry={entry} />
        {entry.reason === null ? "" : `: ${entry.reason}`}
      </span>
    </span>
  );
}

function Target({ entry: { kind, target, at, via } }: { entry: AuditEntry }) {
  const title = `${target}, ${timeText(at)}, ${via}`;
  const to = linkOf(kind, target);
  return to === undefined ? (
    <span class="clip" title={title}>
      {target}
    </span>
  ) : (
    <a class="clip" href={to} title={title}>
      {target}
    </a>
  );
}

const kindWords: Readonly<Partial<Record<AuditEntry["kind"], string>>> = {
  definition: "workflow",
  bulk: "many runs",
  "dead-letter": "dead letter",
};

function orderText({ verb, kind }: AuditEntry): string {
  return `${verb} ${kindWords[kind] ?? kind}`;
}

function linkOf(kind: AuditEntry["kind"], target: string): string | undefined {
  if (kind === "run") return href(["runs", target]);
  if (kind === "queue") return href(["queues"], { lane: target.replace(/[[\]]/g, "") });
  if (kind === "worker") return href(["workers"], { worker: target });
  if (kind === "schedule") return href(["schedules", target]);
  if (kind === "definition") return href(["workflows", target]);
  return undefined;
}

function Values({ values }: { values: AuditEntry["was"] }) {
  if (values === null) return <span class="dim">nothing</span>;
  const text = Object.entries(values)
    .map(
      ([name, value]) =>
        `${name} ${name === "at" || name.endsWith("At") ? (value === null ? "none" : timeText(Number(value))) : String(value ?? "none")}`,
    )
    .join(", ");
  return <span title={text}>{text}</span>;
}
