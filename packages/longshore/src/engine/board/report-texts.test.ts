import { expect, it } from "vitest";
import { keptError } from "./report-texts.ts";

it("an error is stored without NUL, and a long one is cut in the middle", () => {
  expect(keptError("no luck")).toBe("no luck");
  expect(keptError("a\0b")).toBe("a\ufffdb");
  const kept = keptError(`begin${"\0".repeat(100_000)}end`);
  expect(kept.length).toBeLessThanOrEqual(16_384);
  expect(kept).toMatch(/^begin\ufffd.*\ufffdend$/s);
});
