import { describe, expect, it } from "vitest";
import { formatCell, met } from "./report.ts";

describe("report", () => {
  it("judges a speed by its lower bound and a cost by its upper bound", () => {
    expect(met({ what: "rate", value: 2.9, wanted: "at least", bound: 3 })).toBe(false);
    expect(met({ what: "rate", value: 3, wanted: "at least", bound: 3 })).toBe(true);
    expect(met({ what: "cost", value: 1.25, wanted: "at most", bound: 1.25 })).toBe(true);
    expect(met({ what: "cost", value: 1.3, wanted: "at most", bound: 1.25 })).toBe(false);
  });

  it("never counts a missing figure as a reached target", () => {
    expect(met({ what: "rate", value: Number.NaN, wanted: "at least", bound: 3 })).toBe(false);
    expect(met({ what: "cost", value: Number.NaN, wanted: "at most", bound: 3 })).toBe(false);
  });

  it("prints three significant figures and groups thousands", () => {
    expect([12_345.6, 1.2345, 0, Number.NaN, "text"].map(formatCell)).toEqual(["12,346", "1.23", "0", "-", "text"]);
  });
});
