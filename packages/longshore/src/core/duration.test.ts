import { describe, expect, it } from "vitest";
import { durationMs, formatDuration } from "./duration.ts";
import { LongshoreError } from "./errors.ts";

describe("durations", () => {
  it.each([
    [250, 250],
    [0, 0],
    ["500ms", 500],
    ["5s", 5_000],
    ["1.5s", 1_500],
    ["2m", 120_000],
    ["1h", 3_600_000],
    ["7d", 604_800_000],
    [" 3s ", 3_000],
  ])("reads %j as %j ms", (text, ms) => {
    expect(durationMs(text, "wait")).toBe(ms);
  });

  it.each(["", "5", "5 s", "-1s", "s", "1w", "1e3s", -1, Number.NaN, Number.POSITIVE_INFINITY])(
    "refuses %j, naming the setting",
    (text) => {
      const error = catchError(() => durationMs(text, "lease.ttl"));
      expect(error).toBeInstanceOf(LongshoreError);
      expect(error).toMatchObject({ code: "LONGSHORE_BAD_CONFIG", detail: { field: "lease.ttl" } });
      expect((error as Error).message).toContain("lease.ttl is");
    },
  );

  it.each([
    [0, "0 ms"],
    [840, "840 ms"],
    [999.7, "1.0 s"],
    [1_000, "1.0 s"],
    [12_440, "12.4 s"],
    [59_960, "1 m 0 s"],
    [200_000, "3 m 20 s"],
    [3_599_900, "1 h 0 m"],
    [3_600_000, "1 h 0 m"],
    [7_199_990, "2 h 0 m"],
    [93_600_000, "26 h 0 m"],
  ])("writes %j ms as %j", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

function catchError(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}
