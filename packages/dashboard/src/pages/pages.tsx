// Chooses the page for an address. The first script has the pages that are opened first; the others are loaded when the browser has time.

import type { JSX } from "preact";
import { href } from "../core/router.ts";
import { lazy } from "../ui/lazy.tsx";
import { Empty } from "../ui/parts.tsx";
import { OverviewPage } from "./overview.tsx";
import { RunsPage } from "./runs.tsx";

const later = {
  run: lazy(async () => (await import("./run.tsx")).RunPage),
  workflows: lazy(async () => (await import("./workflows.tsx")).WorkflowsPage),
  workflow: lazy(async () => (await import("./workflow.tsx")).WorkflowPage),
  queues: lazy(async () => (await import("./queues.tsx")).QueuesPage),
  workers: lazy(async () => (await import("./workers.tsx")).WorkersPage),
  schedules: lazy(async () => (await import("./schedules.tsx")).SchedulesPage),
  schedule: lazy(async () => (await import("./schedule.tsx")).SchedulePage),
  compare: lazy(async () => (await import("./compare.tsx")).ComparePage),
  letters: lazy(async () => (await import("./dead-letters.tsx")).DeadLettersPage),
  audit: lazy(async () => (await import("./audit.tsx")).AuditPage),
  settings: lazy(async () => (await import("./settings.tsx")).SettingsPage),
};

type PageMaker = (detail: string | undefined) => JSX.Element;

const pages: Readonly<Record<string, PageMaker>> = {
  "": () => <OverviewPage />,
  runs: (id) => (id === undefined ? <RunsPage /> : <later.run id={id} />),
  workflows: (name) => (name === undefined ? <later.workflows /> : <later.workflow name={name} />),
  queues: () => <later.queues />,
  workers: () => <later.workers />,
  "dead-letters": () => <later.letters />,
  schedules: (name) => (name === undefined ? <later.schedules /> : <later.schedule name={name} />),
  compare: () => <later.compare />,
  settings: (part) => (part === "audit" ? <later.audit /> : <later.settings />),
};

/** Loads all pages, so that a link shows its page at once. */
export async function loadPages(): Promise<void> {
  for (const page of Object.values(later)) await page.load();
}

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
