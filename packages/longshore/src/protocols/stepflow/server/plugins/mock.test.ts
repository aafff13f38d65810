import { describe, expect, it } from "vitest";
import type { Json } from "../../../../core/json/json.ts";
import type { MockPlugin } from "../config/config.ts";
import { parseConfig } from "../config/parse.ts";
import { StepFailure } from "../lane.ts";
import { answer } from "./mock.ts";

const text = `plugins:
  m:
    type: mock
    components:
      /c:
        behaviors:
          { input: "a", n: 1 }: { outcome: success, result: { output: b } }
          { mode: error }: { outcome: failed, error: { code: COMPONENT_FAILED, message: error, data: { x: 1 } } }
          { mode: number }: { outcome: failed, error: { code: 8, message: error } }
          { mode: wire }: { outcome: failed, error: { code: TASK_ERROR_CODE_INVALID_INPUT, message: error } }
          { mode: http }: { outcome: failed, error: { code: 500, message: error } }
          { mode: broken }: { error: "out of order" }
`;
const plugin = parseConfig(text, { file: "c.yml", environment: {} }).config.plugins.get("m") as MockPlugin;

function failure(component: string, input: Json): StepFailure {
  try {
    answer(plugin, { step: "s1", component, input });
  } catch (error) {
    if (error instanceof StepFailure) return error;
  }
  throw new Error("It succeeded.");
}

describe("a mock component", () => {
  it("finds the result for its input, for any order of the fields", () => {
    expect(answer(plugin, { step: "s1", component: "/c", input: { n: 1, input: "a" } })).toEqual({ output: "b" });
  });

  it("fails as configured, by name or by number", () => {
    expect(failure("/c", { mode: "error" }).error).toEqual({ code: "COMPONENT_FAILED", message: "error", data: { x: 1 } });
    expect(failure("/c", { mode: "number" }).error.code).toBe("EXPRESSION_FAILURE");
    expect(failure("/c", { mode: "wire" }).error.code).toBe("INVALID_INPUT");
    expect(failure("/c", { mode: "http" }).error.code).toBe("COMPONENT_FAILED");
  });

  it("is unreachable for an unknown input and when it is invalid, and is not retried", () => {
    const unknown = failure("/c", { input: "z" });
    expect(unknown).toMatchObject({ final: true, error: { code: "UNREACHABLE", message: 'step "s1" failed' } });
    expect(unknown.report).toMatchObject({ retryable: false, error: 'step "s1" failed: No behavior defined for /c on {"input":"z"}' });
    expect(failure("/c", { mode: "broken" })).toMatchObject({ final: true, report: { error: 'step "s1" failed: out of order' } });
    expect(failure("/d", 1).report.error).toBe('step "s1" failed: The plugin m has no component /d');
  });

  it("has the reason in the stack of its error, as the reference does", () => {
    expect(failure("/c", { input: "z" }).error.data).toEqual({
      stack: [
        {
          error: 'step "s1" failed',
          attachments: ["Component: /c", "Component execution failed for step 's1'", 'No behavior defined for /c on {"input":"z"}'],
        },
        { error: "error executing user-defined function", attachments: [] },
      ],
    });
  });
});
