import { expect, it } from "vitest";
import type { LaneWork } from "../../../../engine/board/lane-worker.ts";
import { performExpression } from "./expressions.ts";
import type { Origin } from "./origin.ts";

function chosen(expression: string): Promise<unknown> {
  const origin = { task: { type: "INLINE" }, run: {} } as unknown as Origin;
  const task = { input: JSON.stringify({ evaluatorType: "value-param", expression, a: 1 }) };
  const expressions = { evaluate: () => Promise.reject(new Error("There is no code to evaluate.")) };
  return performExpression(origin, { task } as unknown as LaneWork, expressions);
}

it.each(["constructor", "__proto__", "toString", "b"])(
  "the value of the parameter %s, which the task does not have, is null",
  async (name) => {
    expect(await chosen(name)).toEqual({ result: null });
  },
);

it("the value of a parameter of the task is returned", async () => {
  expect(await chosen("a")).toEqual({ result: 1 });
});
