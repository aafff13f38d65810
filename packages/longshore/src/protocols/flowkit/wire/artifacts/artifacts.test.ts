import { describe, expect, it } from "vitest";
import { codeOf } from "../../../../core/errors.ts";
import { type ArtifactStore, partsMax, UpstreamFailed } from "./artifacts.ts";

describe("the artifact port", () => {
  it("reports which upstream node can produce no more, and why", () => {
    const failed = new UpstreamFailed("load", "failed");
    expect(failed.message).toBe('The upstream node "load" has failed.');
    expect(failed.nodeId).toBe("load");
    expect(codeOf(failed)).toBe("LONGSHORE_TASK_FAILED");
    expect(new UpstreamFailed("load", "cancelled").message).toBe('The upstream node "load" was cancelled.');
  });

  it("accepts lists of parts up to a limit", () => {
    const parts: Parameters<ArtifactStore["putPartials"]>[1] = Array.from({ length: partsMax }, (_, at) => ({ uid: `b${at}`, meta: {} }));
    expect(parts).toHaveLength(1_000);
  });
});
