// The attacker is a worker, or starts a run. It sends a JSON value that JavaScript cannot convert, in a place where a text or a number is
// expected. The server must accept the report, and the run must end. Otherwise the worker reports again and again, and the run stays open.

import { describe, expect, it } from "vitest";
import { openConductor, operator, simple } from "../../../../test/support/conductor-world.ts";
import type { Json } from "../../../core/json/json.ts";
import { childRequestOf } from "./snapshot.ts";
import { waitUntil } from "./wait.ts";

const hostile = { toString: 1, valueOf: 2 };

describe("values that wrap each other", () => {
  it("fail their run when they nest too deep, but not the request that contains them", async () => {
    const world = await openConductor();
    const around = (inner: string) => Array.from({ length: 20 }).reduce<Json>((value) => [value], inner);
    const steps = Array.from({ length: 400 }, (_, at) =>
      operator("SET_VARIABLE", `s${at}`, { inputParameters: { v: around("${workflow.variables.v}") } }),
    );
    const id = await world.start([simple("a"), ...steps]);
    await world.work("a");
    const { status, error } = await world.run(id);
    expect(status).toBe("FAILED");
    expect(error).toContain("nest deeper than 500 levels");
  });
});

describe("a value that cannot be converted to text", () => {
  it.each(["duration", "until"])("as the %s of a WAIT fails the WAIT, with the reason", async (field) => {
    const world = await openConductor();
    const wait = operator("WAIT", "pause", { inputParameters: { [field]: "${a.output.v}" } });
    const id = await world.start([simple("a"), wait]);
    await world.work("a", { output: { v: hostile } });
    expect((await world.run(id)).status).toBe("FAILED");
    expect((await world.record(id, "pause")).reason).toMatch(/\{toString=1, valueOf=2\}/);
  });

  it.each(["version", "priority"])("as the %s of a sub-workflow counts as absent", async (field) => {
    const world = await openConductor();
    world.workflow({ name: "child", tasks: [simple("c")] });
    const sub = operator("SUB_WORKFLOW", "sub", { subWorkflowParam: { name: "child", [field]: "${a.output.v}" } });
    const id = await world.start([simple("a"), sub]);
    await world.work("a", { output: { v: hostile } });
    await world.work("c");
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("as the domain of a task of a sub-workflow becomes the same text as in Conductor", () => {
    const { taskToDomain } = childRequestOf({ subWorkflowTaskToDomain: { a: hostile, b: 5, c: null, d: "gpu" } });
    expect(taskToDomain).toEqual({ a: "{toString=1, valueOf=2}", b: "5", d: "gpu" });
  });

  it("is not a duration", () => {
    expect(waitUntil({ duration: hostile }, 0)).toEqual({ failed: "Not valid duration: {toString=1, valueOf=2}" });
  });
});
