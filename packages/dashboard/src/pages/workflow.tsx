// One workflow: its graph, source, versions and runs, the steps that no worker can take, and a start.

import { useMemo } from "preact/hooks";
import { durationText, plural } from "../core/format.ts";
import { touchesRuns } from "../core/live.ts";
import { apiUrl } from "../core/place.ts";
import { useApi } from "../core/resource.ts";
import { go, href, search, setQuery } from "../core/router.ts";
import type { RunGraph, RunList, WholeWorkflow } from "../core/shapes.ts";
import { GraphView } from "../graph/graph-view.tsx";
import type { StepState } from "../graph/model.ts";
import { withoutShortcuts } from "../graph/shortcuts.ts";
import type { JsonSchema } from "../run/schema-form.tsx";
import { askStart } from "../run/start-dialog.tsx";
import { Why } from "../run/why.tsx";
import { Button, Command, Empty, PageHead, Problem, Tabs } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";
import { askDefine } from "./define-dialog.tsx";
import { Figures } from "./figures.tsx";
import { Dots } from "./overview.tsx";
import { columns } from "./runs.tsx";
import { SourceText } from "./source-text.tsx";
import { Versions } from "./versions.tsx";

type Pane = "graph" | "runs" | "figures" | "source" | "versions";

/** How many steps that no worker can take are shown with their commands. */
const unservedMax = 3;

export function WorkflowPage({ name }: { name: string }) {
  const path = `/workflows/${encodeURIComponent(name)}`;
  const runs = useApi<RunList>(`/runs?view=summary&limit=100&workflow=${encodeURIComponent(name)}`, {
    on: (change) => (change.kind === "run" && change.workflow === name) || (change.kind === "tick" && touchesRuns(change)),
  });
  const whole = useApi<WholeWorkflow>(path, { everyMs: 5_000 });
  const workflow = whole.data.value;
  const rows = runs.data.value?.items ?? [];
  const pane = (search.value.get("pane") ?? "graph") as Pane;
  const graph = useMemo(
    () => (workflow === undefined || workflow.steps.length === 0 ? undefined : graphOf(workflow)),
    [workflow?.definitionId, workflow === undefined],
  );
  if (whole.error.value?.status === 404)
    return (
      <Empty title={`There is no workflow ${name}.`}>
        <a href={href(["workflows"])}>All workflows</a>
      </Empty>
    );
  const isDefined = workflow?.definitionId != null;
  return (
    <div class="run-page">
      <PageHead title={name} note={workflow && noteOf(workflow)}>
        <Dots rows={workflow?.lastEnds ?? []} />
        <Button
          kind="main"
          icon="play"
          label="Start"
          needs="run.start"
          blocked={
            workflow === undefined || isDefined ? undefined : "Its runs bring their definition with them: start it over its own protocol."
          }
          onClick={() => workflow && askStart({ workflow: name, schema: schemaOf(workflow), lastInputs: workflow.lastInputs })}
        />
        {workflow?.text != null && <Button label="Edit" needs="definition.check" onClick={() => askDefine(workflow.text ?? "")} />}
        <a class="button" href={href(["runs"], { q: `workflow:${/\s/.test(name) ? JSON.stringify(name) : name}` })}>
          All its runs
        </a>
      </PageHead>
      <Problem error={whole.error.value} />
      {workflow !== undefined && <Unserved workflow={workflow} />}
      <section class="run-main" aria-label="Views of the workflow">
        <Tabs<Pane>
          label="Views of the workflow"
          active={pane}
          onPick={(next) => setQuery({ pane: next })}
          tabs={[
            { name: "graph", title: "Graph" },
            { name: "runs", title: "Newest runs", count: rows.length },
            { name: "figures", title: "Figures" },
            { name: "source", title: "Source", count: workflow?.problems.length },
            { name: "versions", title: "Versions" },
          ]}
        />
        <div class="run-pane" role="tabpanel" aria-labelledby={`tab-${pane}`} data-pane={pane}>
          {pane === "graph" && workflow !== undefined && <Plan graph={graph} lastRun={rows[0]?.id} />}
          {pane === "figures" && <Figures only={`&workflow=${encodeURIComponent(name)}`} workflow={name} />}
          {pane === "source" && workflow !== undefined && <Source workflow={workflow} />}
          {pane === "versions" && workflow?.version != null && <Versions path={path} newest={workflow.version} />}
          {pane === "versions" && workflow?.version === null && (
            <Empty title="Each run brings its own definition, so there are no versions." />
          )}
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

function noteOf({ dialect, version, events, steps, p50Ms, p95Ms, lastEnds }: WholeWorkflow): string {
  const facts = [dialect ?? "", ...(version === null ? ["defined by its runs"] : [`version ${version}`, plural(steps.length, "step")])];
  if (events.length > 0) facts.push(`starts on ${events.join(", ")}`);
  if (p50Ms !== null && p95Ms !== null)
    facts.push(`half of the last ${lastEnds.length} runs within ${durationText(p50Ms)}, 95 % within ${durationText(p95Ms)}`);
  return facts.join(", ");
}

/** Before anything is started: which steps would wait for ever. */
function Unserved({ workflow: { unserved } }: { workflow: WholeWorkflow }) {
  if (unserved.length === 0) return null;
  return (
    <section class="unserved" aria-label="Steps that no worker can take">
      <h2>
        {unserved.length === 1 ? "No worker can take the step " : `No worker can take ${plural(unserved.length, "step")}, such as `}
        {unserved[0]?.step}
      </h2>
      {unserved.slice(0, unservedMax).map(({ step, lane, labels, text, missing }) => (
        <Why key={step} blocked={{ isPlan: true, runId: null, step, lane, labels, waiting: { reason: "no-worker", text, missing } }} />
      ))}
    </section>
  );
}

/** Without a definition, the plan of the newest run. */
function Plan({ graph, lastRun }: { graph: RunGraph | undefined; lastRun: string | undefined }) {
  const ofRun = useApi<RunGraph>(graph === undefined && lastRun !== undefined ? `/runs/${encodeURIComponent(lastRun)}/graph` : null);
  const shown = graph ?? ofRun.data.value;
  if (shown === undefined) return lastRun === undefined ? <Empty title="Its graph is known when it has run." /> : null;
  return <GraphView graph={shown} states={planStates(shown)} selected={null} onSelect={() => {}} />;
}

function Source({ workflow: { text, problems, definitionId, name } }: { workflow: WholeWorkflow }) {
  if (text !== null) return <SourceText text={text} problems={problems} />;
  if (definitionId === null) return <Empty title="Each run brings its own definition." />;
  return (
    <Empty title="The source is too long for this page.">
      <Command text={`curl ${apiUrl}/definitions/${encodeURIComponent(name)}`} />
    </Empty>
  );
}

/** A schema without fields is no form. */
function schemaOf({ inputSchema }: WholeWorkflow): JsonSchema | undefined {
  const schema = inputSchema as JsonSchema | null;
  return schema?.properties === undefined ? undefined : schema;
}

/** No step of a plan has a state. */
function planStates(graph: RunGraph): ReadonlyMap<number, StepState> {
  return new Map(graph.nodes.map((node) => [node, { state: "plan", attempts: 0, durationMs: null }]));
}

/** The plan of the workflow in the form of a run's graph. */
function graphOf({ definitionId, name, dialect, steps }: WholeWorkflow): RunGraph {
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
      definitionId: definitionId ?? "",
      workflow: name,
      dialect: dialect ?? "",
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
