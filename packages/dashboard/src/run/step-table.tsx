// The steps of a run as a list: the accessible form of the graph and of the timeline.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { RunGraph, Step } from "../core/shapes.ts";
import { Button, Elapsed, Problem } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";
import type { RunData } from "./run-data.ts";

interface StepTableProps {
  readonly data: RunData;
  readonly selected: number | null;
  readonly onSelect: (at: number | null) => void;
}

const filters = {
  all: { title: "All", keeps: () => true },
  failed: { title: "Failed", keeps: ({ state }: Step) => state === "failed" },
  waiting: { title: "Waiting", keeps: ({ waiting }: Step) => waiting !== undefined },
  open: { title: "Working", keeps: ({ state }: Step) => state === "held" || state === "cancelling" },
  done: { title: "Done", keeps: ({ state }: Step) => state === "done" },
} as const;

const columns: readonly Column<Step>[] = [
  { name: "State", width: "110px", cell: ({ state }) => <State state={state} /> },
  { name: "Step", width: "minmax(120px, 2fr)", cell: ({ id }) => <span class="strong">{id}</span> },
  { name: "Attempt", width: "70px", numeric: true, minor: true, cell: ({ attempt }) => (attempt === 0 ? "" : attempt) },
  {
    name: "Took",
    width: "90px",
    numeric: true,
    cell: ({ startedAt, endedAt }) => (startedAt === null ? "" : <Elapsed from={startedAt} to={endedAt} />),
  },
  { name: "Worker", width: "minmax(80px, 1fr)", minor: true, cell: ({ holder }) => holder ?? "" },
  {
    name: "What",
    width: "minmax(120px, 3fr)",
    cell: ({ error, lastError, waiting, kind }) => error ?? waiting?.text ?? lastError ?? (kind === "task" ? "" : kind),
  },
];

export function StepTable({ data, selected, onSelect }: StepTableProps) {
  const filter = useSignal<keyof typeof filters>("all");
  const text = useSignal("");
  const steps = data.steps.data.value;
  const graph = data.graph.data.value;
  const rows = useMemo(() => {
    const wanted = text.value.trim().toLowerCase();
    return (steps ?? []).filter((step) => filters[filter.value].keeps(step) && (wanted === "" || step.id.toLowerCase().includes(wanted)));
  }, [steps, filter.value, text.value]);
  const places = useMemo(() => placesOf(graph), [graph]);
  const active = rows.findIndex(({ id }) => places.get(id) === selected && selected !== null);
  const choose = (step: Step | undefined) => onSelect(step === undefined ? null : (places.get(step.id) ?? null));
  return (
    <div class="list-pane">
      <div class="filters">
        <input
          type="search"
          placeholder="Find a step"
          aria-label="Find a step"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        {(Object.keys(filters) as (keyof typeof filters)[]).map((name) => (
          <Button
            key={name}
            label={filters[name].title}
            pressed={filter.value === name}
            onClick={() => {
              filter.value = name;
            }}
          />
        ))}
      </div>
      <Problem error={data.steps.error.value} />
      <Table
        label="Steps"
        rows={rows}
        columns={columns}
        keyOf={({ id }) => id}
        active={active}
        onActive={(at) => choose(rows[at])}
        onOpen={choose}
      />
    </div>
  );
}

function placesOf(graph: RunGraph | undefined): ReadonlyMap<string, number> {
  return new Map(graph?.ids.map((id, at) => [id, at]));
}
