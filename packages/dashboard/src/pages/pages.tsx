// Chooses the page for an address.

import type { JSX } from "preact";
import { href } from "../core/router.ts";
import { Empty } from "../ui/parts.tsx";
import { ComparePage } from "./compare.tsx";
import { OverviewPage } from "./overview.tsx";
import { QueuesPage } from "./queues.tsx";
import { RunPage } from "./run.tsx";
import { RunsPage } from "./runs.tsx";
import { SchedulePage } from "./schedule.tsx";
import { SchedulesPage } from "./schedules.tsx";
import { SettingsPage } from "./settings.tsx";
import { WorkersPage } from "./workers.tsx";
import { WorkflowPage } from "./workflow.tsx";
import { WorkflowsPage } from "./workflows.tsx";

type PageMaker = (detail: string | undefined) => JSX.Element;

const pages: Readonly<Record<string, PageMaker>> = {
  "": () => <OverviewPage />,
  runs: (id) => (id === undefined ? <RunsPage /> : <RunPage id={id} />),
  workflows: (name) => (name === undefined ? <WorkflowsPage /> : <WorkflowPage name={name} />),
  queues: () => <QueuesPage />,
  workers: () => <WorkersPage />,
  schedules: (name) => (name === undefined ? <SchedulesPage /> : <SchedulePage name={name} />),
  compare: () => <ComparePage />,
  settings: () => <SettingsPage />,
};

export function PageOf({ segments }: { segments: readonly string[] }) {
  const [name = "", detail] = segments;
  const make = Object.hasOwn(pages, name) ? pages[name] : undefined;
  if (make !== undefined) return make(detail);
  return (
    <Empty title="There is no such page.">
      <a href={href([])}>To the overview</a>
    </Empty>
  );
}
