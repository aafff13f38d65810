import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holdOfWireId, wireTaskId } from "./task-id.ts";

describe("a task's id on the wire", () => {
  it("identifies one hand-out, and the hand-out is found from it", () => {
    expect(wireTaskId({ id: "01J8.3", grant: 5 })).toBe("01J8.3-5");
    expect(holdOfWireId("01J8.3-5")).toEqual({ taskId: "01J8.3", grant: 5 });
    expect(holdOfWireId("01J8-2-0.3-11")).toEqual({ taskId: "01J8-2-0.3", grant: 11 });
    const grants = fc.integer({ min: 1, max: 1_000_000 });
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 100 }), grants, (id, grant) => {
        expect(holdOfWireId(wireTaskId({ id, grant }))).toEqual({ taskId: id, grant });
      }),
    );
  });

  it.each(["", "x", "-1", "x-", "x-0", "x-01", "x--", "x-1e3", "x-9999999999999999", "discovery-", `${"x".repeat(600)}-1`])(
    "is not %j",
    (text) => {
      expect(holdOfWireId(text)).toBeUndefined();
    },
  );
});
