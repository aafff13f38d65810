import { describe, expect, it } from "vitest";
import { newRun } from "../../../engine/run/new-run.ts";
import type { Run } from "../../../engine/run/run.ts";
import { RunLookup } from "./run-lookup.ts";

describe("the newest run of a workflow", () => {
  function setup(stored: Run | undefined) {
    let reads = 0;
    const none = () => Promise.resolve(undefined);
    const lookup = new RunLookup({
      runs: { run: none, definition: none, definitionById: none },
      reader: { newestRun: () => Promise.resolve(++reads > 0 ? stored : undefined), runByAlias: none },
      plan: () => {
        throw new Error("No plan is needed.");
      },
    });
    return { lookup, reads: () => reads };
  }
  const run = (id: string, state: Run["state"]): Run => {
    return { ...newRun({ id, workflow: "w", definitionId: "d", input: "{}" }, 1, null), state };
  };

  it("is read once, and then updated from changes of runs", async () => {
    const { lookup, reads } = setup(run("r1", "succeeded"));
    expect(await lookup.newest("w")).toEqual({ id: "r1", state: "succeeded" });
    lookup.changed(run("r2", "running"));
    lookup.changed(run("r2", "cancelled"));
    lookup.changed(run("r1", "running"));
    expect(await lookup.newest("w")).toEqual({ id: "r2", state: "cancelled" });
    expect(reads()).toBe(1);
  });

  it("is read from the store again when only an older run has changed since the start of the server", async () => {
    const { lookup, reads } = setup(run("r2", "cancelled"));
    lookup.changed(run("r1", "succeeded"));
    expect(await lookup.newest("w")).toEqual({ id: "r2", state: "cancelled" });
    expect(reads()).toBe(1);
  });
});
