// A running server as the source for `longshore verify`, over its API.

import type { ChildHistory, RunHistory, TaskHistory } from "../engine/run/history.ts";
import { type Keep, keepOf } from "../engine/run/retention.ts";
import type { HistorySource } from "../verify/verify.ts";
import type { Page } from "./api.ts";
import { type Client, Refusal } from "./client.ts";

type RunPage = RunHistory & { readonly next: string | null };

export function liveSource(client: Client): HistorySource {
  const run = async (id: string): Promise<RunHistory | undefined> => {
    const tasks: TaskHistory[] = [];
    const children: ChildHistory[] = [];
    for (let after: string | undefined; ; ) {
      const page: RunPage | undefined = await orUndefined(client.get<RunPage>(`/history/runs/${encodeURIComponent(id)}`, { after }));
      if (page === undefined) return undefined;
      tasks.push(...page.tasks);
      children.push(...page.children);
      if (page.next === null) return { ...page, tasks, children };
      after = page.next;
    }
  };
  return {
    async *runs() {
      for await (const id of pages<string>(client, "/history/runs")) {
        const found = await run(id);
        if (found !== undefined) yield found;
      }
    },
    looseTasks: () => pages<TaskHistory>(client, "/history/tasks"),
    // The API does not show the files next to the data file.
    async *others() {},
    kept: async () => {
      const kept = await orUndefined(client.get<Keep>("/history/kept"));
      return kept === undefined ? undefined : keepOf(kept);
    },
    again: run,
    run,
    task: (id) => orUndefined(client.get<TaskHistory>(`/history/tasks/${encodeURIComponent(id)}`)),
    step: async (runId, step) => (await run(runId))?.tasks.find((task) => task.step === step),
  };
}

async function* pages<Item>(client: Client, path: string): AsyncGenerator<Item, void, void> {
  for (let after: string | undefined; ; ) {
    const page: Page<Item> = await client.get<Page<Item>>(path, { after });
    yield* page.items;
    if (page.next === null) return;
    after = page.next;
  }
}

/** Retention may remove a run while it is read, and a recording may name ids that never existed here. */
async function orUndefined<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return undefined;
    throw error;
  }
}
