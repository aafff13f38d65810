// One workflow: its graph, its source, its runs, and a start.

import { useMemo } from "preact/hooks";
import { plural } from "../core/format.ts";
import { touchesRuns } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import { go, href, search, setQuery } from "../core/router.ts";
import type { RunGraph, RunList, WholeDefinition } from "../core/shapes.ts";
import { GraphView } from "../graph/graph-view.tsx";
import type { StepState } from "../graph/model.ts";
import { withoutShortcuts } from "../graph/shortcuts.ts";
import type { JsonSchema } from "../run/schema-form.tsx";
import { askStart } from "../run/start-dialog.tsx";
import { Json } from "../ui/json.tsx";
import { Button, Empty, PageHead, Problem, Tabs } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";
import { Figures } from "./figures.tsx";
import { Dots } from "./overview.tsx";
import { columns } from "./runs.tsx";

type Pane = "graph" | "runs" | "figures" | "source";

export function WorkflowPage({ name }: { name: string }) {
  const whole = useApi<WholeDefinition>(`/definitions/${encodeURIComponent(name)}`, { everyMs: 15_000 });
  const runs = useApi<RunList>(`/runs?view=summary&limit=100&workflow=${encodeURIComponent(name)}`, {
    on: (change) => (change.kind === "run" && change.workflow === name) || (change.kind === "tick" && touchesRuns(change)),
  });
  const definition = whole.data.value;
  const rows = runs.data.value?.items ?? [];
  const pane = (search.value.get("pane") ?? "graph") as Pane;
  const graph = useMemo(() => (definition === undefined ? undefined : graphOf(definition)), [definition?.id]);
  const schema = useMemo(() => schemaOf(definition?.source), [definition?.id]);
  if (whole.error.value?.status === 404 && rows.length === 0) return <Empty title={`There is no workflow ${name}.`} />;
  return (
    <div class="run-page">
      <PageHead
        title={name}
        note={
          definition === undefined
            ? undefined
            : `${definition.dialect}, version ${definition.version}, ${plural(definition.steps.length, "step")}`
        }
      >
        <Dots rows={rows} />
        <Button
          kind="main"
          icon="play"
          label="Start"
          needs="run.start"
          onClick={() => askStart({ workflow: name, schema, input: schema === undefined ? rows[0] && undefined : undefined })}
        />
        <a class="button" href={href(["runs"], { q: `workflow:${/\s/.test(name) ? JSON.stringify(name) : name}` })}>
          All its runs
        </a>
      </PageHead>
      <Problem error={whole.error.value} />
      <section class="run-main" aria-label="Views of the workflow">
        <Tabs<Pane>
          label="Views of the workflow"
          active={pane}
          onPick={(next) => setQuery({ pane: next })}
          tabs={[
            { name: "graph", title: "Graph" },
            { name: "runs", title: "Newest runs", count: rows.length },
            { name: "figures", title: "Figures" },
            { name: "source", title: "Source" },
          ]}
        />
        <div class="run-pane" role="tabpanel" aria-labelledby={`tab-${pane}`} data-pane={pane}>
          {pane === "graph" && graph !== undefined && (
            <GraphView graph={graph} states={planStates(graph)} selected={null} onSelect={() => {}} />
          )}
          {pane === "figures" && <Figures only={`&workflow=${encodeURIComponent(name)}`} workflow={name} />}
          {pane === "source" && definition !== undefined && <Source value={definition.source} />}
          {pane === "runs" && rows.length === 0 && <Empty title="It has not run yet." />}
          {pane === "runs" && rows.length > 0 && (
            <Table
              label="Runs of the workflow"
              rows={rows}
              columns={columns}
              keyOf={({ id }) => id}
              onOpen={({ id }) => go(href(["runs", id]))}
            />
          )}
        </div>
      </section>
    </div>
  );
}

function Source({ value }: { value: unknown }) {
  if (typeof value === "string")
    return (
      <pre class="source" tabIndex={0}>
        {value}
      </pre>
    );
  return <Json name="Source" value={value} />;
}

/** No step of a plan has a state. */
function planStates(graph: RunGraph): ReadonlyMap<number, StepState> {
  return new Map(graph.nodes.map((node) => [node, { state: "plan", attempts: 0, durationMs: null }]));
}

/** The plan of the workflow in the form of a run's graph. */
function graphOf({ id, name, dialect, steps }: WholeDefinition): RunGraph {
  const places = new Map(steps.map((step, at) => [step.id, at]));
  const edges: [number, number][] = [];
  const edgeKinds: RunGraph["edgeKinds"] = [];
  steps.forEach(({ after, startedBy }, to) => {
    const add = (kind: "after" | "starts") => (from: string) => {
      const place = places.get(from);
      if (place === undefined) return;
      edges.push([place, to]);
      edgeKinds.push(kind);
    };
    after.forEach(add("after"));
    startedBy.forEach(add("starts"));
  });
  const kept = withoutShortcuts(steps.length, edges);
  return {
    ...{
      runId: "",
      definitionId: id,
      workflow: name,
      dialect,
      isFunction: false,
      isCut: false,
      edges: kept.map((at) => edges[at] as [number, number]),
    },
    nodes: steps.map((_step, at) => at),
    ids: steps.map((step) => step.id),
    kinds: steps.map((step) => step.kind),
    lanes: steps.map((step) => step.lane),
    workflows: steps.map((step) => step.workflow),
    groups: steps.map(() => null),
    groupList: [],
    edgeKinds: kept.map((at) => edgeKinds[at] ?? "after"),
    edgeLabels: kept.map(() => null),
  };
}

/** The places where the languages have the schema of the input. */
function schemaOf(source: unknown): JsonSchema | undefined {
  const given = typeof source === "string" ? parsed(source) : source;
  if (typeof given !== "object" || given === null) return undefined;
  const { inputSchema, schemas, input } = given as { inputSchema?: unknown; schemas?: { input?: unknown }; input?: unknown };
  return [inputSchema, schemas?.input, input].find(
    (one): one is JsonSchema => typeof one === "object" && one !== null && "properties" in one,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
