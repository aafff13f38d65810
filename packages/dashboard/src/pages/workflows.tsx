// All workflows, of every language, with how their last runs ended.

import { useSignal } from "@preact/signals";
import { call, query } from "../core/api.ts";
import { countText, durationText } from "../core/format.ts";
import { touchesRuns } from "../core/live.ts";
import { serverUrl } from "../core/place.ts";
import { useResource } from "../core/resource.ts";
import { go, href } from "../core/router.ts";
import type { Page, Workflow } from "../core/shapes.ts";
import { Button, Command, Empty, PageHead, Problem, Time } from "../ui/parts.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { askDefine } from "./define-dialog.tsx";
import { Dots } from "./overview.tsx";

/** More workflows than this are found by their name. */
const shownMax = 1_000;

const duration = (ms: number | null) => (ms === null ? "" : durationText(ms));

const columns: readonly Column<Workflow>[] = [
  {
    name: "Workflow",
    width: "minmax(160px, 2fr)",
    cell: ({ name }) => (
      <a class="strong" href={href(["workflows", name])}>
        {name}
      </a>
    ),
  },
  { name: "Language", width: "124px", minor: true, cell: ({ dialect }) => dialect ?? "" },
  { name: "Version", width: "72px", numeric: true, minor: true, cell: ({ version }) => version ?? "" },
  { name: "Open", width: "64px", numeric: true, minor: true, cell: ({ runs }) => count(openOf(runs)) },
  { name: "Last 20 ends", width: "minmax(150px, 1fr)", cell: ({ lastEnds }) => <Dots rows={lastEnds} /> },
  { name: "Half within", width: "92px", numeric: true, minor: true, cell: ({ p50Ms }) => duration(p50Ms) },
  { name: "95 % within", width: "92px", numeric: true, minor: true, cell: ({ p95Ms }) => duration(p95Ms) },
  {
    name: "Last end",
    width: "112px",
    cell: ({ lastEnds: [newest], runs }) =>
      newest === undefined ? <span class="dim">{openOf(runs) > 0 ? "none yet" : "never ran"}</span> : <Time at={newest.endedAt} />,
  },
];

const openOf = ({ running = 0, paused = 0, blocked = 0 }: Workflow["runs"]) => running + paused + blocked;
const count = (number: number) => (number === 0 ? "" : countText(number));

async function read(text: string, gone: AbortSignal): Promise<Workflow[]> {
  const found: Workflow[] = [];
  for (let after: string | null = null; found.length < shownMax; ) {
    const { items, next }: Page<Workflow> = await call(`/workflows${query({ text, after })}`, { signal: gone });
    found.push(...items);
    after = next;
    if (after === null) break;
  }
  return found;
}

export function WorkflowsPage() {
  const text = useSignal("");
  const wanted = text.value.trim();
  const list = useResource(`workflows ${wanted}`, (gone) => read(wanted, gone), { on: touchesRuns, gapMs: 2_000, everyMs: 10_000 });
  const rows = list.data.value;
  return (
    <div class="list-page">
      <PageHead title="Workflows">
        <Button kind="main" icon="plus" label="Define" needs="definition.check" onClick={() => askDefine()} />
      </PageHead>
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
        {rows !== undefined && rows.length >= shownMax && <span class="dim">The first {countText(shownMax)} are shown.</span>}
      </div>
      <Problem error={list.error.value} />
      {rows?.length === 0 && wanted !== "" && <Empty title="No workflow has this text in its name." />}
      {rows?.length === 0 && wanted === "" && (
        <Empty title="No workflow is defined yet.">
          <p>A workflow comes from a file, from a program, or from a client of another protocol:</p>
          <Command text={`npx longshore define workflow.yml --on ${serverUrl}`} />
        </Empty>
      )}
      {rows !== undefined && rows.length > 0 && (
        <Table
          label="Workflows"
          rows={rows}
          columns={columns}
          keyOf={({ name }) => name}
          onOpen={({ name }) => go(href(["workflows", name]))}
        />
      )}
    </div>
  );
}
