// The signals of a run, and a way to send one.

import { touchesRun } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import type { Page, Run, Signal } from "../core/shapes.ts";
import { Button, Empty, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { askSignal, blockedOrder } from "./actions.tsx";

const columns: readonly Column<Signal>[] = [
  { name: "State", width: "100px", cell: ({ state }) => <State state={state} /> },
  { name: "Name", width: "minmax(100px, 1fr)", cell: ({ name }) => <span class="strong">{name}</span> },
  { name: "Sent", width: "110px", cell: ({ sentAt }) => <Time at={sentAt} /> },
  {
    name: "Taken by",
    width: "minmax(100px, 2fr)",
    minor: true,
    cell: ({ taskId, attempt }) => (taskId === null ? "" : `${taskId}, attempt ${attempt}`),
  },
  {
    name: "Value",
    width: "minmax(100px, 2fr)",
    cell: ({ value, state }) => <span class="mono">{state === "taken" ? "" : JSON.stringify(value)}</span>,
  },
];

export function SignalsPane({ run }: { run: Run }) {
  const list = useApi<Page<Signal>>(`/runs/${encodeURIComponent(run.id)}/signals?limit=1000`, {
    on: (change) => touchesRun(change, run.id),
  });
  const rows = list.data.value?.items;
  return (
    <div class="list-pane">
      <Problem error={list.error.value} />
      {rows?.length === 0 && (
        <Empty title="No signal was sent to this run.">
          <p>A signal gives a value to a step that waits for it, such as an approval by a person.</p>
          <Button icon="signal" label="Send a signal" blocked={blockedOrder.signal(run)} onClick={() => askSignal(run)} />
        </Empty>
      )}
      {rows !== undefined && rows.length > 0 && (
        <Table label="Signals" rows={rows} columns={columns} keyOf={({ number }) => String(number)} />
      )}
    </div>
  );
}
