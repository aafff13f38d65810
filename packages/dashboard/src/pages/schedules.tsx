// All schedules: the next tick of each, and the outcome of its last ticks.

import { timeText } from "../core/format.ts";
import { useApi } from "../core/resource.ts";
import { go, href } from "../core/router.ts";
import type { Page, Schedule } from "../core/shapes.ts";
import { askSchedule } from "../run/schedule-dialog.tsx";
import { Button, Empty, PageHead, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";

/** When a schedule ticks, in words. */
export function rhythmOf({ cron, timezone, every, at }: Pick<Schedule, "cron" | "timezone" | "every" | "at">): string {
  if (cron !== undefined) return `${cron} (${timezone ?? "UTC"})`;
  if (every !== undefined) return `every ${every % 60_000 === 0 ? `${every / 60_000} min` : `${every / 1_000} s`}`;
  return at === undefined ? "" : `once, ${timeText(at)}`;
}

const columns: readonly Column<Schedule>[] = [
  {
    name: "Schedule",
    width: "minmax(140px, 2fr)",
    cell: ({ name }) => (
      <a class="strong" href={href(["schedules", name])}>
        {name}
      </a>
    ),
  },
  {
    name: "Workflow",
    width: "minmax(110px, 1fr)",
    minor: true,
    cell: ({ workflow }) => <a href={href(["workflows", workflow])}>{workflow}</a>,
  },
  { name: "When", width: "minmax(140px, 2fr)", minor: true, cell: (row) => <code>{rhythmOf(row)}</code> },
  {
    name: "Next",
    width: "120px",
    cell: ({ nextAt, paused }) => (paused !== null ? <State state="paused" /> : nextAt === null ? "never again" : <Time at={nextAt} />),
  },
  {
    name: "Last tick",
    width: "120px",
    cell: ({ history: [last] }) => (last === undefined ? <span class="dim">none</span> : <State state={last.outcome} />),
  },
  { name: "Open runs", width: "80px", numeric: true, minor: true, cell: ({ open }) => (open.length === 0 ? "" : open.length) },
];

export function SchedulesPage() {
  const list = useApi<Page<Schedule>>("/schedules?limit=1000", { everyMs: 5_000 });
  const rows = list.data.value?.items ?? [];
  return (
    <div class="list-page">
      <PageHead title="Schedules">
        <Button kind="main" icon="plus" label="New schedule" needs="schedule.write" onClick={() => askSchedule()} />
      </PageHead>
      <Problem error={list.error.value} />
      {list.data.value?.items.length === 0 && (
        <Empty title="There is no schedule.">
          <p>A schedule starts runs of a workflow: by a cron expression with a time zone, at an interval, or once.</p>
          <Button icon="plus" label="New schedule" needs="schedule.write" onClick={() => askSchedule()} />
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Schedules"
          rows={rows}
          columns={columns}
          keyOf={({ name }) => name}
          onOpen={({ name }) => go(href(["schedules", name]))}
        />
      )}
    </div>
  );
}
