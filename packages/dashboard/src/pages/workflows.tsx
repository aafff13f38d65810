// All workflows, of every language.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { touchesRuns } from "../core/live.ts";
import { serverUrl } from "../core/place.ts";
import { useApi } from "../core/resource.ts";
import { go, href } from "../core/router.ts";
import type { Definition, Page, RunList, RunSummary } from "../core/shapes.ts";
import { Command, Empty, PageHead, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Dots } from "./overview.tsx";

interface Row {
  readonly definition: Definition;
  readonly runs: readonly RunSummary[];
}

const columns: readonly Column<Row>[] = [
  {
    name: "Workflow",
    width: "minmax(160px, 2fr)",
    cell: ({ definition: { name } }) => (
      <a class="strong" href={href(["workflows", name])}>
        {name}
      </a>
    ),
  },
  { name: "Language", width: "130px", cell: ({ definition }) => definition.dialect },
  { name: "Version", width: "72px", numeric: true, minor: true, cell: ({ definition }) => definition.version },
  { name: "Defined", width: "110px", minor: true, cell: ({ definition }) => <Time at={definition.createdAt} /> },
  { name: "Last runs", width: "minmax(120px, 1fr)", minor: true, cell: ({ runs }) => <Dots rows={runs.slice(0, 20)} /> },
  {
    name: "Newest run",
    width: "130px",
    cell: ({ runs: [newest] }) => (newest === undefined ? <span class="dim">none</span> : <State state={newest.state} />),
  },
];

export function WorkflowsPage() {
  const list = useApi<Page<Definition>>("/definitions?limit=1000", { everyMs: 10_000 });
  const recent = useApi<RunList>("/runs?view=summary&limit=1000", { on: touchesRuns, gapMs: 5_000 });
  const text = useSignal("");
  const rows = useMemo(() => {
    const byName = new Map<string, RunSummary[]>();
    for (const run of recent.data.value?.items ?? []) {
      const list = byName.get(run.workflow);
      if (list === undefined) byName.set(run.workflow, [run]);
      else list.push(run);
    }
    const wanted = text.value.trim().toLowerCase();
    return (list.data.value?.items ?? [])
      .filter(({ name }) => name.toLowerCase().includes(wanted))
      .sort((one, other) => one.name.localeCompare(other.name))
      .map((definition) => ({ definition, runs: byName.get(definition.name) ?? [] }));
  }, [list.data.value, recent.data.value, text.value]);
  return (
    <div class="list-page">
      <PageHead title="Workflows" />
      <div class="filters">
        <input
          type="search"
          placeholder="Find a workflow"
          aria-label="Find a workflow"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <span class="dim">Last runs shows only runs that are among the newest 1,000 of the server.</span>
      </div>
      <Problem error={list.error.value} />
      {list.data.value?.items.length === 0 && (
        <Empty title="No workflow is defined yet.">
          <p>A workflow comes from a file, from a program, or from a client of another protocol:</p>
          <Command text={`npx longshore define workflow.yml --on ${serverUrl}`} />
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Workflows"
          rows={rows}
          columns={columns}
          keyOf={({ definition }) => definition.id}
          onOpen={({ definition }) => go(href(["workflows", definition.name]))}
        />
      )}
    </div>
  );
}
