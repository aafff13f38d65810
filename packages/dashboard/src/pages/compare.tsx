// Two runs beside each other: their steps aligned by name, the first difference, and the duration of each step.

import { useMemo } from "preact/hooks";
import { durationText } from "../core/format.ts";
import { type Change, touchesRun } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import { href, search } from "../core/router.ts";
import type { Page, Run, Step } from "../core/shapes.ts";
import { Json } from "../ui/json.tsx";
import { Empty, PageHead, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";

interface Pair {
  readonly id: string;
  readonly a: Step | undefined;
  readonly b: Step | undefined;
}

const took = (step: Step | undefined) => (step?.startedAt == null || step.endedAt === null ? null : step.endedAt - step.startedAt);

const columns: readonly Column<Pair>[] = [
  { name: "Step", width: "minmax(140px, 2fr)", cell: ({ id, a, b }) => <span class={a?.state === b?.state ? "" : "strong"}>{id}</span> },
  { name: "First", width: "120px", cell: ({ a }) => (a === undefined ? <span class="dim">not there</span> : <State state={a.state} />) },
  { name: "took", width: "90px", numeric: true, minor: true, cell: ({ a }) => text(took(a)) },
  { name: "Second", width: "120px", cell: ({ b }) => (b === undefined ? <span class="dim">not there</span> : <State state={b.state} />) },
  { name: "took ", width: "90px", numeric: true, minor: true, cell: ({ b }) => text(took(b)) },
  { name: "Slower by", width: "100px", numeric: true, cell: ({ a, b }) => difference(took(a), took(b)) },
  {
    name: "Error",
    width: "minmax(100px, 2fr)",
    minor: true,
    cell: ({ a, b }) => <span class="error-text">{b?.error ?? a?.error ?? ""}</span>,
  },
];

function text(ms: number | null): string {
  return ms === null ? "" : durationText(ms);
}

function difference(a: number | null, b: number | null): string {
  if (a === null || b === null || Math.abs(b - a) < 1) return "";
  return `${b > a ? "+" : "-"}${durationText(Math.abs(b - a))}`;
}

export function ComparePage() {
  const [a, b] = [search.value.get("a"), search.value.get("b")];
  const first = useRunWithSteps(a);
  const second = useRunWithSteps(b);
  const pairs = useMemo(() => pairsOf(first.steps, second.steps), [first.steps, second.steps]);
  if (a === null || b === null) return <Empty title="Name two runs: /ui/compare?a=RUN&b=RUN" />;
  const differs = pairs.find((pair) => pair.a?.state !== pair.b?.state);
  return (
    <div class="list-page">
      <PageHead
        title="Two runs compared"
        note={differs === undefined ? "Every step ended in the same way." : `The first step that differs is ${differs.id}.`}
      />
      <Problem error={first.error ?? second.error} />
      <div class="columns">
        {[first.run, second.run].map(
          (run) =>
            run !== undefined && (
              <section key={run.id} class="card column" aria-label={`Run ${run.id}`}>
                <p>
                  <State state={run.state} /> <a href={href(["runs", run.id])}>{run.workflow}</a> <Time at={run.createdAt} />
                </p>
                <Json name="Input" value={run.input} />
              </section>
            ),
        )}
      </div>
      <Table label="Steps of both runs" rows={pairs} columns={columns} keyOf={({ id }) => id} />
    </div>
  );
}

function useRunWithSteps(id: string | null) {
  const path = id === null ? null : `/runs/${encodeURIComponent(id)}`;
  const on = (change: Change) => id !== null && touchesRun(change, id);
  const run = useApi<Run>(path, { on });
  const steps = useApi<Page<Step>>(path === null ? null : `${path}/steps?limit=1000`, { on });
  return { run: run.data.value, steps: steps.data.value?.items, error: run.error.value ?? steps.error.value };
}

function pairsOf(first: readonly Step[] = [], second: readonly Step[] = []): Pair[] {
  const others = new Map(second.map((step) => [step.id, step]));
  const known = new Set(first.map(({ id }) => id));
  return [
    ...first.map((a) => ({ id: a.id, a, b: others.get(a.id) })),
    ...second.filter(({ id }) => !known.has(id)).map((b) => ({ id: b.id, a: undefined, b })),
  ];
}
