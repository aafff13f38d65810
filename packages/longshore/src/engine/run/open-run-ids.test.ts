import { describe, expect, it } from "vitest";
import { OpenRunIds } from "./open-run-ids.ts";

describe("the ids of open runs", () => {
  it("are known by workflow from the start of a run to its end, and again when it lives again", () => {
    const ids = new OpenRunIds();
    const run = (id: string, endedAt: number | null) => ids.changed({ id, workflow: "w", endedAt });
    run("r1", null);
    run("r2", null);
    run("r1", 5);
    run("never-open", 5);
    expect([...ids.of("w")]).toEqual(["r2"]);
    expect([...ids.of("other")]).toEqual([]);
    run("r2", 6);
    expect([...ids.of("w")]).toEqual([]);
    run("r1", null);
    expect([...ids.of("w")]).toEqual(["r1"]);
  });
});
