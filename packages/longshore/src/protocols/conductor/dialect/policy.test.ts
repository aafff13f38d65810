import { describe, expect, it } from "vitest";
import { backoffMs } from "../../../core/backoff.ts";
import type { TaskDef } from "./model.ts";
import { backoffOf, limitsOf, placementOf, retriesOf, retryOf, timeoutsOf } from "./policy.ts";
import { defaultTaskDef } from "./task-def.ts";

const definition = (fields: Partial<TaskDef>): TaskDef => ({ ...defaultTaskDef("t"), ...fields });
const delays = (fields: Partial<TaskDef>, random = 0) => [1, 2, 3].map((retry) => backoffMs(backoffOf(definition(fields)), retry, random));

describe("delays before retries", () => {
  it("are the same each time when FIXED, and capped", () => {
    expect(delays({ retryLogic: "FIXED", retryDelaySeconds: 2 })).toEqual([2_000, 2_000, 2_000]);
    expect(delays({ retryLogic: "FIXED", retryDelaySeconds: 9, maxRetryDelaySeconds: 5 })).toEqual([5_000, 5_000, 5_000]);
  });

  it("double from the first on when EXPONENTIAL, up to the cap", () => {
    expect(delays({ retryLogic: "EXPONENTIAL_BACKOFF", retryDelaySeconds: 2 })).toEqual([2_000, 4_000, 8_000]);
    expect(delays({ retryLogic: "EXPONENTIAL_BACKOFF", retryDelaySeconds: 2, maxRetryDelaySeconds: 3 })).toEqual([2_000, 3_000, 3_000]);
  });

  it("grow by the scaled delay when LINEAR, up to the cap", () => {
    const linear = { retryLogic: "LINEAR_BACKOFF", retryDelaySeconds: 2, backoffScaleFactor: 2 } as const;
    expect(delays(linear)).toEqual([4_000, 8_000, 12_000]);
    expect(delays({ ...linear, maxRetryDelaySeconds: 5 })).toEqual([4_000, 5_000, 5_000]);
  });

  it("have their jitter added to the cap", () => {
    const jittered = { retryLogic: "FIXED", retryDelaySeconds: 60, maxRetryDelaySeconds: 60, backoffJitterMs: 5_000 } as const;
    expect(delays(jittered, 0)[0]).toBe(60_000);
    expect(delays(jittered, 0.999_999_9)[0]).toBe(65_000);
  });
});

describe("retries", () => {
  it("use the count of the workflow's task before that of the task definition", () => {
    expect(retriesOf({ retryCount: 1 }, definition({ retryCount: 5 }))).toBe(1);
    expect(retriesOf({ retryCount: 0 }, definition({ retryCount: 5 }))).toBe(0);
    expect(retriesOf({}, definition({ retryCount: 5 }))).toBe(5);
    expect(retriesOf({}, null)).toBe(0);
  });
});

describe("deadlines", () => {
  it("come from the definition", () => {
    expect(timeoutsOf(definition({}))).toEqual({});
    const named = definition({ timeoutSeconds: 9, pollTimeoutSeconds: 3, totalTimeoutSeconds: 20, responseTimeoutSeconds: 4 });
    expect(timeoutsOf(named)).toEqual({ claimMs: 3_000, endMs: 9_000, totalMs: 20_000 });
    expect(placementOf({ startDelay: 2 }, named, [])).toMatchObject({ holdMs: 4_000, delayMs: 2_000, retry: { withinMs: 20_000 } });
  });

  it("end only the hold of a silent worker and further attempts when the policy is ALERT_ONLY", () => {
    const alert = definition({ timeoutSeconds: 9_999, pollTimeoutSeconds: 3, totalTimeoutSeconds: 5, timeoutPolicy: "ALERT_ONLY" });
    expect(timeoutsOf(alert)).toEqual({});
    expect(placementOf({ startDelay: 0 }, alert, [])).toMatchObject({ holdMs: 3_600_000, retry: { withinMs: 5_000 } });
  });

  it("end the run when the policy requires it", () => {
    expect(retryOf({}, definition({ timeoutPolicy: "TIME_OUT_WF" }))).toMatchObject({ timeoutEndsRun: true, lost: "as-failure" });
    expect(retryOf({}, definition({ timeoutPolicy: "RETRY" }))).not.toHaveProperty("timeoutEndsRun");
  });
});

describe("limits", () => {
  it("are counted for each definition by its name", () => {
    expect(limitsOf(definition({}))).toEqual([]);
    expect(limitsOf(definition({ concurrentExecLimit: 0 }))).toEqual([]);
    expect(limitsOf(definition({ concurrentExecLimit: 2, rateLimitPerFrequency: 5, rateLimitFrequencyInSeconds: 10 }))).toEqual([
      { key: "conductor:t", held: 2, rate: { count: 5, windowMs: 10_000 } },
    ]);
  });
});
