import { describe, expect, it } from "vitest";
import { closedLoop, Witness } from "./closed-loop.ts";

const SHORT = { concurrency: 4, warmUpSeconds: 0, seconds: 0.02 };

describe("closed loop", () => {
  it("counts each task once when every task is executed once", async () => {
    const witness = new Witness();
    const result = await closedLoop({ submit: async (input) => witness.handler(input) }, witness, SHORT);
    expect(result.tasks).toBeGreaterThan(0);
    expect(result).toMatchObject({ lost: 0, repeated: 0, wrong: 0 });
  });

  it("detects a task that has a result but was never executed", async () => {
    const witness = new Witness();
    const submit = async (input: { sequence: number; padding: string }) => (input.sequence === 1 ? input : witness.handler(input));
    expect(await closedLoop({ submit }, witness, SHORT)).toMatchObject({ lost: 1, repeated: 0 });
  });

  it("detects a task that was executed twice, and one that no client submitted", async () => {
    const witness = new Witness();
    const submit = async (input: { sequence: number; padding: string }) => {
      if (input.sequence === 0) witness.handler(input);
      return witness.handler(input);
    };
    const result = await closedLoop({ submit }, witness, SHORT);
    expect(result.repeated).toBe(1);
    witness.handler({ sequence: 10_000_000, padding: "" });
    expect(witness.check(result.tasks).repeated).toBeGreaterThan(1);
  });

  it("detects a result that belongs to another task", async () => {
    const witness = new Witness();
    const submit = async (input: { sequence: number; padding: string }) => ({ ...witness.handler(input), sequence: -1 });
    const result = await closedLoop({ submit }, witness, SHORT);
    expect(result.wrong).toBe(result.tasks);
  });
});
