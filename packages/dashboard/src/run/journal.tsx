// The journal of a durable function: its commands in order, with their results.

import { useMemo } from "preact/hooks";
import { call, query } from "../core/api.ts";
import { timeText } from "../core/format.ts";
import { touchesRun } from "../core/live.ts";
import { useResource } from "../core/resource.ts";
import type { Journal, RunGraph } from "../core/shapes.ts";
import { Problem } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";

type Entry = Journal["entries"][number];

interface JournalPaneProps {
  readonly runId: string;
  readonly graph: RunGraph | undefined;
  readonly selected: number | null;
  readonly onSelect: (at: number | null) => void;
}

/** Further commands are in the list of steps. */
const entriesMax = 10_000;

export function JournalPane({ runId, graph, selected, onSelect }: JournalPaneProps) {
  const path = `/runs/${encodeURIComponent(runId)}/journal`;
  const journal = useResource<readonly Entry[]>(path, (gone) => wholeJournal(path, gone), {
    on: (change) => touchesRun(change, runId),
  });
  const places = useMemo(() => new Map(graph?.nodes.map((node, at) => [node, at])), [graph]);
  const rows = journal.data.value ?? [];
  const active = selected === null ? -1 : rows.findIndex(({ node }) => places.get(node) === selected);
  return (
    <div class="list-pane">
      <Problem error={journal.error.value} />
      <Table
        label="Commands of the function"
        rows={rows}
        columns={columns}
        keyOf={({ node }) => String(node)}
        active={active}
        onActive={(at) => onSelect(places.get(rows[at]?.node ?? -1) ?? null)}
        onOpen={({ node }) => onSelect(places.get(node) ?? null)}
      />
    </div>
  );
}

const columns: readonly Column<Entry>[] = [
  { name: "No.", width: "56px", numeric: true, cell: ({ node }) => node },
  {
    name: "State",
    width: "110px",
    cell: ({ result }) => <State state={result?.state ?? "queued"} label={result === undefined ? "open" : undefined} />,
  },
  { name: "Command", width: "minmax(140px, 2fr)", cell: ({ command }) => <span class="strong">{command}</span> },
  {
    name: "Result at",
    width: "100px",
    minor: true,
    cell: ({ result }) => (result === undefined ? "" : timeText(result.at, { withDate: false })),
  },
  { name: "Result", width: "minmax(120px, 3fr)", cell: ({ result }) => <span class="mono">{resultText(result)}</span> },
];

const resultCharsMax = 300;

function resultText(result: Entry["result"]): string {
  if (result === undefined) return "";
  if (result.error !== undefined) return result.error.slice(0, resultCharsMax);
  return result.output === undefined ? "" : JSON.stringify(result.output).slice(0, resultCharsMax);
}

async function wholeJournal(path: string, gone: AbortSignal): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  let after: number | undefined;
  do {
    const page: Journal = await call(`${path}${query({ after })}`, { signal: gone });
    entries.push(...page.entries);
    after = page.next;
  } while (after !== undefined && entries.length < entriesMax);
  return entries;
}
