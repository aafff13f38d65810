import { describe, expect, it } from "vitest";
import { scopeOf } from "../../../../test/support/scope.ts";
import type { Json } from "../../../core/json/json.ts";
import type { TaskNode } from "../../../engine/run/plan.ts";
import { workflowGraphDialect } from "./compile.ts";
import { parseFile } from "./file.ts";
import { sampleSource } from "./sample.ts";
import { encodeSource, plainJob } from "./source.ts";

const { compile, resolve } = workflowGraphDialect;
const scope = (outputs: { [node: number]: Json }) => scopeOf(null, outputs);
const file = (...lines: string[]) => compile(parseFile(["name: n", "on: push", "jobs:", ...lines].join("\n")).source);

describe("compiling a definition", () => {
  it("makes one task per job, with its labels, budgets and timeout", () => {
    const plan = file(
      "  a: { run: echo a }",
      "  b: { run: echo b, needs: a, labels: [linux, gpu], retries: 2, max_lost_leases: 3, timeout: 5, backoff: { base: 2, max: 60 } }",
    );
    expect(plan.nodes[1]).toMatchObject({
      kind: "task",
      id: "b",
      after: [0],
      waitsFor: "done",
      timeouts: { endMs: 5_000 },
      lanes: [{ name: "$command", labels: ["gpu", "linux"] }],
      retry: { failures: 2, lost: 3, backoff: { kind: "exponential", delayMs: 2_000, maxMs: 60_000 } },
    });
    expect((plan.nodes[0] as TaskNode).retry).toEqual({ failures: 0, lost: 1, backoff: { kind: "fixed", delayMs: 0 } });
    expect(plan.nodes[0]?.timeouts).toEqual({});
  });

  it("gives a job its command and the outputs of its direct dependencies, as texts", () => {
    const plan = file("  a: { run: x }", "  b: { run: x }", "  c: { run: echo c, needs: [a, b, a] }");
    const input = plan.nodes[2]?.input;
    expect(resolve(plan, input, scope({ 0: { version: "1", count: 2 } }))).toEqual({ needs: [1] });
    const resolved = resolve(plan, input, scope({ 0: { version: "1", count: 2 }, 1: null }));
    expect(JSON.stringify(resolved)).toBe('{"value":{"command":"echo c","upstream":{"a":{"version":"1","count":"2"},"b":{}}}}');
  });

  it("puts a single value under `result`", () => {
    const plan = file("  a: { run: x }", "  b: { run: y, needs: a }");
    expect(JSON.stringify(resolve(plan, plan.nodes[1]?.input, scope({ 0: [1, 2] })))).toContain('"upstream":{"a":{"result":"[1,2]"}}');
  });

  it("requires the label of the handler that a command names, whether or not the job does", () => {
    const jobs = ['@greet {"name":"Ada"}', '{"handler":"greet","input":1}', "@greet not JSON", "echo @greet", '{"handler":"two words"}'];
    const labels = ["linux"];
    const source = {
      name: "n",
      trigger: "t",
      jobs: jobs.map((command, at) => ({ ...plainJob(`j${at}`, command), required_labels: labels })),
    };
    const lanes = compile(encodeSource(source)).nodes.map((node) => (node as TaskNode).lanes[0]?.labels);
    const named = ["handler:greet", "linux"];
    expect(lanes).toEqual([named, named, named, labels, labels]);
  });

  it("skips a job with `if: false`", () => {
    const plan = file("  a: { run: x, if: false }", "  b: { run: y }");
    expect(resolve(plan, plan.nodes[0]?.when, scope({}))).toEqual({ value: false });
    expect(plan.nodes[1]?.when).toBeUndefined();
  });

  it("compiles a job named __proto__ like any other", () => {
    const jobs = [plainJob("__proto__", "x"), { ...plainJob("b", "y"), depends_on: ["__proto__"] }];
    const plan = compile(encodeSource({ name: "n", trigger: "t", jobs }));
    const outputs = { 0: JSON.parse('{"__proto__":"kept"}') as Json };
    expect(JSON.stringify(resolve(plan, plan.nodes[1]?.input, scope(outputs)))).toContain('"upstream":{"__proto__":{"__proto__":"kept"}}');
  });

  it("compiles the sample of eight jobs", () => {
    const plan = compile(sampleSource);
    expect(plan.nodes.map((node) => node.id)).toEqual([
      "unit-tests",
      "lint",
      "typecheck",
      "build",
      "deploy-db",
      "e2e-tests",
      "deploy-preview",
      "deploy-web",
    ]);
    expect(plan.dependents[3]).toEqual([4, 5, 6]);
  });

  it("gives the run no output", () => {
    const plan = compile(sampleSource);
    expect(resolve(plan, plan.output, scope({}))).toEqual({ value: null });
  });
});
