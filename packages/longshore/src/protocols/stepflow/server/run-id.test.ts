import { describe, expect, it } from "vitest";
import { idMaker } from "../../../core/ids.ts";
import { itemPrefix, itemRunId, ownRunId, wireRun, wireRunId } from "./run-id.ts";

describe("run ids on the wire", () => {
  const runId = idMaker()(1_763_000_000_000);

  it("are UUIDs, from which the run is found; the run's own id also works", () => {
    expect(wireRunId(runId)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    expect(ownRunId(wireRunId(runId))).toBe(runId);
    expect(ownRunId(runId)).toBe(runId);
  });

  it("of items are the ids of the run that they belong to", () => {
    expect(wireRun(itemRunId(runId, 12))).toEqual({ runId, itemIndex: 12 });
    expect(wireRunId(itemRunId(runId, 99_999))).toBe(wireRunId(runId));
    expect([itemRunId(runId, 10), itemRunId(runId, 2)].sort()).toEqual([itemRunId(runId, 2), itemRunId(runId, 10)]);
    expect(itemRunId(runId, 0).startsWith(itemPrefix(runId))).toBe(true);
  });

  it("of runs whose callers chose the id stay unchanged", () => {
    for (const id of [`${runId}-2-0`, `${runId}-0f`, "ci-1"]) {
      expect(wireRunId(id)).toBe(id);
      expect(wireRun(id)).toEqual({ runId: id, itemIndex: 0 });
    }
  });
});
