import { describe, expect, it } from "vitest";
import { scopeOf } from "../../../../test/support/scope.ts";
import type { Scope } from "../../../engine/run/dialect.ts";
import type { TaskNode } from "../../../engine/run/plan.ts";
import { codeDialect } from "../../../protocols/longshore/dialect/dialect.ts";
import { references, type StepSource, type Value } from "../../../protocols/longshore/dialect/source.ts";

const compile = (steps: StepSource[], output: Value = null) => codeDialect.compile(JSON.stringify({ name: "w", steps, output }));
const scope = scopeOf;
const ref = (step: string | undefined, ...path: (string | number)[]): Value => ({ $ref: step === undefined ? { path } : { step, path } });
const plan = compile([
  { id: "a", task: "ta", input: null },
  { id: "b", task: "tb", input: { x: ref("a") } },
]);
const resolve = (template: Value, around: Scope) => codeDialect.resolve(plan, template, around);

describe("compiling", () => {
  it("orders steps by the references in their input, their condition, and by after, each once", () => {
    const made = compile([
      { id: "d", task: "t", input: [ref("a"), { deep: [ref("b", "x")] }], when: ref("c"), after: ["a"] },
      { id: "a", task: "t", input: ref(undefined) },
      { id: "b", task: "t", input: null, after: ["a"] },
      { id: "c", task: "t", input: null },
    ]);
    expect(made.nodes.map((node) => node.after)).toEqual([[1, 2, 3], [], [1], []]);
  });

  it("puts a step on the lane of its task, with its labels sorted", () => {
    const [node] = compile([{ id: "a", task: "t", input: null, labels: ["b", "a", "b"], priority: 3 }]).nodes;
    expect((node as TaskNode).lanes).toEqual([{ name: "t", labels: ["a", "b"] }]);
    expect((node as TaskNode).priority).toBe(3);
  });

  it("retries no failure and forgives two lost holds by default", () => {
    const [plain, told] = compile([
      { id: "a", task: "t", input: null },
      { id: "b", task: "t", input: null, retry: { failures: 3, lost: 0, backoff: { kind: "fixed", delayMs: 1 } } },
    ]).nodes as TaskNode[];
    expect(plain?.retry).toMatchObject({ failures: 0, lost: 2 });
    expect(told?.retry).toEqual({ failures: 3, lost: 0, backoff: { kind: "fixed", delayMs: 1 } });
  });

  it("makes a step of another workflow a run", () => {
    expect(compile([{ id: "a", workflow: "child", input: 1 }]).nodes[0]).toMatchObject({
      kind: "run",
      workflow: "child",
      waitsFor: "done",
    });
  });

  it("refuses a reference to a step that does not exist", () => {
    expect(() => compile([{ id: "a", task: "t", input: ref("nowhere") }])).toThrow(/refers to nowhere/);
  });

  it("refuses circles, naming the steps", () => {
    const circle: StepSource[] = [
      { id: "a", task: "t", input: null, after: ["b"] },
      { id: "b", task: "t", input: ref("a") },
    ];
    expect(() => compile(circle)).toThrow(/in a circle: a -> b -> a/);
  });

  it("refuses more steps than a plan may have", () => {
    expect(() => compile(Array.from({ length: 20_001 }, (_, at) => ({ id: `s${at}`, task: "t", input: null })))).toThrow(/at most 20000/);
  });
});

describe("resolving", () => {
  it("replaces references by their values, at any depth", () => {
    const template = { name: ref(undefined, "who", "name"), parts: [ref("a", "list", 1), 7], plain: "text" };
    expect(resolve(template, scope({ who: { name: "Ann" } }, { 0: { list: [1, { deep: true }] } }))).toEqual({
      value: { name: "Ann", parts: [{ deep: true }, 7], plain: "text" },
    });
  });

  it("requests every output that has not been loaded", () => {
    expect(resolve([ref("a"), ref("b", "x")], scope(null))).toEqual({ needs: [0, 1] });
    expect(resolve([ref("a"), ref("b", "x")], scope(null, { 0: 1 }))).toEqual({ needs: [1] });
  });

  it("reads null all the way down from a step without an output", () => {
    expect(resolve(ref("a", "x", "y"), scope(null, { 0: null }))).toEqual({ value: null });
  });

  it("reports what is missing and where, instead of passing on undefined", () => {
    expect(resolve(ref("a", "x", "y"), scope(null, { 0: { x: {} } }))).toEqual({ failed: 'the output of step a has nothing at "x.y"' });
    expect(resolve(ref(undefined, "name"), scope({}))).toEqual({ failed: 'the run\'s input has nothing at "name"' });
    expect(resolve(ref(undefined, "name"), scope("a text"))).toMatchObject({ failed: expect.any(String) });
  });

  it("never reaches what a value merely inherits", () => {
    for (const inherited of ["constructor", "toString", "__proto__"])
      expect(resolve(ref(undefined, inherited), scope({}))).toHaveProperty("failed");
  });

  it("keeps a member that is named as the prototype of objects is", () => {
    const named = (value: unknown) => JSON.parse(`{"__proto__":${JSON.stringify(value)}}`) as Value;
    const resolved = resolve(named(ref("a")), scope(null, { 0: 5 }));
    expect(JSON.stringify(resolved)).toBe('{"value":{"__proto__":5}}');
  });

  it("unwraps data that only looks like a reference, and fills the true ones inside", () => {
    const wrapped = { $value: { $ref: { of: ref("a") } } };
    expect(resolve(wrapped, scope(null, { 0: 5 }))).toEqual({ value: { $ref: { of: 5 } } });
    expect(references(wrapped)).toEqual([{ step: "a", path: [] }]);
    expect(resolve({ $value: { $value: 1 } }, scope(null))).toEqual({ value: { $value: 1 } });
    expect(resolve({ $ref: 1, more: 2 }, scope(null))).toEqual({ value: { $ref: 1, more: 2 } });
  });
});
