// The workers: which are live, what each can run, and which tasks it holds.

import { useMemo } from "preact/hooks";
import { countText, durationText, now } from "../core/format.ts";
import { touchesTasks } from "../core/live.ts";
import { serverUrl } from "../core/place.ts";
import { useApi } from "../core/resource.ts";
import { href, search, setQuery } from "../core/router.ts";
import type { Page, Worker } from "../core/shapes.ts";
import { Button, Command, Copy, Empty, Facts, PageHead, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Halted, WorkerButton } from "./halts.tsx";

const columns: readonly Column<Worker>[] = [
  { name: "Status", width: "90px", cell: ({ status }) => <State state={status} /> },
  {
    name: "Worker",
    width: "minmax(140px, 2fr)",
    cell: ({ id, cordoned }) => (
      <>
        <span class="strong">{id}</span>
        {cordoned !== null && <span class="label tone-warn">cordoned</span>}
      </>
    ),
  },
  { name: "Protocol", width: "120px", minor: true, cell: ({ protocol }) => protocol },
  { name: "Slots", width: "76px", numeric: true, cell: slotsText },
  { name: "Ended/min", width: "92px", numeric: true, minor: true, cell: ({ perMinute }) => (perMinute === 0 ? "" : countText(perMinute)) },
  { name: "p95", width: "80px", numeric: true, minor: true, cell: ({ p95 }) => (p95 === null ? "" : durationText(p95)) },
  {
    name: "What it does",
    width: "minmax(140px, 3fr)",
    minor: true,
    cell: ({ does, lanes }) => (does.length > 0 ? does : lanes).join(", "),
  },
  {
    name: "Host",
    width: "minmax(80px, 1fr)",
    minor: true,
    cell: ({ host, pid }) => [host, pid].filter((part) => part !== null).join(" · "),
  },
  { name: "Last heard", width: "110px", minor: true, cell: ({ seenAt }) => <Time at={seenAt} /> },
  { name: "Labels", width: "minmax(80px, 1fr)", minor: true, cell: ({ labels }) => labels.join(", ") },
];

/** `3/8`: three of its eight slots are used. */
function slotsText({ tasks, slots }: Worker): string {
  if (slots === null) return tasks.length === 0 ? "" : String(tasks.length);
  return `${tasks.length}/${slots}`;
}

/** On a phone: whether it lives, how full it is, what it does. */
function narrowRow(worker: Worker) {
  const { id, status, protocol, does, lanes } = worker;
  return (
    <span class="narrow-row">
      <State state={status} />
      <span class="strong clip">{id}</span>
      <span class="dim num">{slotsText(worker)}</span>
      <span class="clip dim">
        {protocol}: {(does.length > 0 ? does : lanes).join(", ")}
      </span>
    </span>
  );
}

const order: Readonly<Record<Worker["status"], number>> = { busy: 0, idle: 1, unheard: 2, offline: 3 };

export function WorkersPage() {
  const list = useApi<Page<Worker>>("/workers?limit=1000", { on: touchesTasks, everyMs: 3_000 });
  const rows = useMemo(
    () =>
      [...(list.data.value?.items ?? [])].sort((one, other) => order[one.status] - order[other.status] || one.id.localeCompare(other.id)),
    [list.data.value],
  );
  const chosen = rows.find(({ id }) => id === search.value.get("worker"));
  return (
    <div class="list-page">
      <PageHead title="Workers" />
      <Problem error={list.error.value} />
      {list.data.value?.items.length === 0 && (
        <Empty title="No worker has connected yet.">
          <p>A worker is a program of yours that takes tasks. This prints one for each protocol and language:</p>
          <Command text={`npx longshore snippets --on ${serverUrl}`} />
        </Empty>
      )}
      <div class="split" data-open={chosen !== undefined}>
        {rows.length > 0 && (
          <Table
            label="Workers"
            narrow={narrowRow}
            rows={rows}
            columns={columns}
            keyOf={({ id }) => id}
            active={chosen === undefined ? -1 : rows.indexOf(chosen)}
            onActive={(at) => setQuery({ worker: rows[at]?.id ?? null })}
            onOpen={({ id }) => setQuery({ worker: id })}
          />
        )}
        {chosen !== undefined && <Detail worker={chosen} onDone={() => list.refresh()} />}
      </div>
    </div>
  );
}

const meanings: Readonly<Record<Worker["status"], string>> = {
  busy: "It holds tasks.",
  idle: "It waits for tasks.",
  unheard: "It is known from before the server started, and has been silent since.",
  offline: "It has been silent for too long. Tasks that it held were given to others.",
};

function processText({ host, pid, language, version }: Worker): string {
  const parts = [host, pid === null ? null : `process ${pid}`, language, version];
  return parts.filter((part) => part !== null).join(", ") || "not said";
}

function Detail({ worker, onDone }: { worker: Worker; onDone: () => void }) {
  const { id, protocol, status, labels, lanes, does, registeredAt, seenAt, tasks } = worker;
  return (
    <section class="panel" aria-label={`Worker ${id}`}>
      <div class="panel-head">
        <State state={status} />
        <h2>{id}</h2>
        <Copy text={id} label="Copy the id of the worker" />
        <WorkerButton worker={worker} onDone={onDone} />
        <Button kind="icon" icon="close" label="Close the worker" onClick={() => setQuery({ worker: null })} />
      </div>
      <div class="panel-body">
        <p>{meanings[status]}</p>
        {worker.cordoned !== null && <Halted word="It gets no more tasks: cordoned" halt={worker.cordoned} />}
        <Facts
          rows={[
            ["Protocol", protocol],
            ["Process", processText(worker)],
            ["Slots", worker.slots === null ? "not said" : `${tasks.length} of ${worker.slots} used`],
            ["Ended in the last minute", countText(worker.perMinute)],
            ["Failed in 15 minutes", countText(worker.failed)],
            ["95 of 100 take at most", worker.p95 === null ? "none ended lately" : durationText(worker.p95)],
            ["Labels", labels.length === 0 ? "none" : labels.join(", ")],
            ["Does", does.length === 0 ? "not said" : does.join(", ")],
            ["Lanes it claims", lanes.length === 0 ? "none lately" : lanes.join(", ")],
            ["First heard", <Time key="first" at={registeredAt} />],
            ["Last heard", <Time key="last" at={seenAt} />],
          ]}
        />
        <h3>Tasks it holds</h3>
        {tasks.length === 0 && <p class="dim">None.</p>}
        <ul class="run-lines">
          {tasks.map(({ taskId, runId, step, claimedAt }) => (
            <li key={taskId}>
              {runId === null ? <code>{taskId}</code> : <a href={href(["runs", runId], { step })}>{step}</a>}
              <span class="num dim">{durationText(now.value - claimedAt)}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
