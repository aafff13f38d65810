// The lanes: which tasks wait in each, and why.

import { useMemo } from "preact/hooks";
import { countText, durationText, now } from "../core/format.ts";
import { touchesTasks } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import { href, search, setQuery } from "../core/router.ts";
import type { Page, Queue, TaskView } from "../core/shapes.ts";
import { Why } from "../run/why.tsx";
import { Button, Empty, Facts, PageHead, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Halted, QueueButton } from "./halts.tsx";
import { LaneLimits } from "./limits.tsx";

const columns: readonly Column<Queue>[] = [
  {
    name: "Lane",
    width: "minmax(140px, 2fr)",
    cell: ({ lane, labels, paused }) => (
      <>
        <span class="strong">{lane}</span>
        {labels.map((label) => (
          <span key={label} class="label">
            {label}
          </span>
        ))}
        {paused !== null && <span class="label tone-warn">paused</span>}
      </>
    ),
  },
  { name: "Ready", width: "64px", numeric: true, cell: ({ ready }) => countText(ready) },
  { name: "Oldest", width: "90px", numeric: true, cell: ({ oldestAt }) => (oldestAt === null ? "" : durationText(now.value - oldestAt)) },
  { name: "Why the oldest waits", width: "minmax(140px, 3fr)", minor: true, cell: ({ waiting }) => waiting?.text ?? "" },
  { name: "Held", width: "64px", numeric: true, minor: true, cell: ({ held, sent }) => countText(held + sent) },
  { name: "Workers", width: "80px", numeric: true, minor: true, cell: ({ workers }) => countText(workers) },
  { name: "Limited", width: "76px", numeric: true, minor: true, cell: ({ limited }) => (limited === 0 ? "" : countText(limited)) },
  { name: "Delayed", width: "78px", numeric: true, minor: true, cell: ({ delayed }) => (delayed === 0 ? "" : countText(delayed)) },
  {
    name: "Out/min",
    width: "76px",
    numeric: true,
    minor: true,
    cell: ({ claimedPerMinute }) => (claimedPerMinute === 0 ? "" : countText(claimedPerMinute)),
  },
  { name: "Polled", width: "110px", minor: true, cell: ({ polledAt }) => (polledAt === null ? "never" : <Time at={polledAt} />) },
];

/** On a phone: what waits, since when, and why. */
function narrowRow({ lane, labels, ready, held, sent, oldestAt, waiting }: Queue) {
  return (
    <span class="narrow-row">
      <span class="num">{countText(ready)}</span>
      <span class="strong clip">{[lane, ...labels].join(" ")}</span>
      <span class="dim num">{oldestAt === null ? "" : durationText(now.value - oldestAt)}</span>
      <span class="clip dim">{waiting?.text ?? `${countText(held + sent)} held`}</span>
    </span>
  );
}

/** The lane of one worker for turns of durable functions is not worth a line while it is empty. */
const isShown = ({ lane, ready, sent }: Queue) => ready + sent > 0 || !lane.startsWith("function.");
const keyOf = ({ lane, labels }: Queue) => [lane, ...labels].join(" ");

export function QueuesPage() {
  const list = useApi<Page<Queue>>("/queues?limit=1000", { on: touchesTasks, everyMs: 3_000 });
  const chosen = search.value.get("lane");
  // The lane with the longest wait is first.
  const rows = useMemo(
    () => (list.data.value?.items ?? []).filter(isShown).sort((one, other) => (one.oldestAt ?? Infinity) - (other.oldestAt ?? Infinity)),
    [list.data.value],
  );
  const lane = rows.find((row) => keyOf(row) === chosen) ?? rows.find((row) => row.lane === chosen);
  return (
    <div class="list-page">
      <PageHead
        title="Queues"
        note="A lane is a name and labels. Workers take tasks from the lanes that they name, if they have all labels."
      />
      <Problem error={list.error.value} />
      {list.data.value?.items.length === 0 && (
        <Empty title="No lane has tasks, and no worker asks for any.">
          <p>
            A lane is there while tasks wait in it or workers poll it. <a href={href(["workers"])}>Workers</a>
          </p>
        </Empty>
      )}
      <div class="split" data-open={lane !== undefined}>
        {rows.length > 0 && (
          <Table
            label="Lanes"
            narrow={narrowRow}
            rows={rows}
            columns={columns}
            keyOf={keyOf}
            active={lane === undefined ? -1 : rows.indexOf(lane)}
            onActive={(at) => setQuery({ lane: rows[at] === undefined ? null : keyOf(rows[at]) })}
            onOpen={(row) => setQuery({ lane: keyOf(row) })}
          />
        )}
        {lane !== undefined && <Lane lane={lane} onDone={() => list.refresh()} />}
      </div>
    </div>
  );
}

function Lane({ lane, onDone }: { lane: Queue; onDone: () => void }) {
  const tasks = useApi<Page<TaskView>>(`/tasks?state=queued&limit=50&lane=${encodeURIComponent(lane.lane)}`, {
    on: touchesTasks,
  });
  const waiting = (tasks.data.value?.items ?? []).filter(({ labels }) => labels.join() === lane.labels.join());
  return (
    <section class="panel" aria-label={`Lane ${lane.lane}`}>
      <div class="panel-head">
        <h2>{lane.lane}</h2>
        <QueueButton queue={lane} onDone={onDone} />
        <Button kind="icon" icon="close" label="Close the lane" onClick={() => setQuery({ lane: null })} />
      </div>
      <div class="panel-body">
        {lane.paused !== null && <Halted word="Paused" halt={lane.paused} />}
        {lane.waiting !== null && lane.waiting.reason !== "paused" && (
          <Why blocked={{ runId: null, step: "The oldest task", lane: lane.lane, labels: lane.labels, waiting: lane.waiting }} />
        )}
        <Facts
          rows={[
            ["Labels", lane.labels.length === 0 ? "none" : lane.labels.join(", ")],
            ["Ready", countText(lane.ready)],
            ["Held by workers", countText(lane.held)],
            ["Sent, not begun", countText(lane.sent)],
            ["Wait for a limit", countText(lane.limited)],
            ["Delayed", countText(lane.delayed)],
            ["Taken in the last minute", countText(lane.claimedPerMinute)],
            lane.workP95 === null ? null : ["95 of 100 take at most", durationText(lane.workP95)],
            ["Claims that wait", countText(lane.pollers)],
            ["Live workers", countText(lane.workers)],
            ["Last polled", lane.polledAt === null ? "never" : <Time at={lane.polledAt} />],
          ]}
        />
        <LaneLimits keys={lane.limits} />
        <h3>Tasks that wait</h3>
        {waiting.length === 0 && <p class="dim">None.</p>}
        <ul class="run-lines">
          {waiting.map(({ id, runId, step, postedAt, state }) => (
            <li key={id}>
              <State state={state} />
              {runId === null ? <code>{id}</code> : <a href={href(["runs", runId], { step })}>{step}</a>}
              <span class="dim">
                <Time at={postedAt} />
              </span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
