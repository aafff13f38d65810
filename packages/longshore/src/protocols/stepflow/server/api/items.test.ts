import { describe, expect, it } from "vitest";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { ComponentWork } from "../lane.ts";
import { type ItemDeps, ItemRuns } from "./items.ts";

describe("the items of a run", () => {
  it("do not begin when the run is cancelled while they are read", async () => {
    const cancelled = new AbortController();
    const begun: string[] = [];
    const settings = { items: 2, itemDefinitionId: "item", maxConcurrency: 1 };
    const items = new ItemRuns({
      reader: {
        run: async () => ({ id: "run", input: "[1,2]", settings: JSON.stringify(settings) }),
        async *headsUnder() {},
        async definitionById() {
          cancelled.abort();
          return { id: "item" };
        },
      },
      runs: {
        async begin({ id }: { id: string }) {
          begun.push(id);
          return { run: { id, state: "succeeded" } };
        },
      },
      plan: () => ({ origin: { width: 1 } }),
    } as unknown as ItemDeps);
    const work = { task: { id: "task", runId: "run" } as TaskRow, signal: cancelled.signal, lend: (wait) => wait() } as ComponentWork;
    await expect(items.perform(work)).rejects.toThrow("aborted");
    expect(begun).toEqual([]);
  });
});
