// The work that each worker must do on each orchestrator: the same for our worker and for the Python workers.
import { expect } from "vitest";
import type { Child } from "../src/child.ts";
import type { Marks } from "../src/marks.ts";
import { until } from "../src/until.ts";
import { flowOf, type Item, type Operator, type Outcome } from "./operator.ts";

/** Every type of JSON value, with numbers that a double can hold. */
const VALUES = {
  whole: 42,
  part: -1.5,
  none: null,
  yes: true,
  text: 'Grüße "\n',
  list: [1, [], {}],
  object: { z: 1, a: { b: null } },
  empty: "",
};

/** A worker that pulls and sends nothing for this time is considered dead, so it needs its heartbeats. */
const SLOW_SECONDS = 12;

/** The error codes of this pair of worker and orchestrator. Undefined when the orchestrator does not show the worker's code. */
export interface Expected {
  /** An exception of a component. */
  failed: number;
  /** A component without a worker. */
  missing: { code: number; text: string };
  /**
   * An exception because a service is not available at the moment. The same as `failed` when the protocol has one code for all exceptions.
   */
  unavailable: number;
  /** Whether `onError: retry` has an effect. */
  retries: boolean;
  /** Whether a blob is also found when the name of the hash function precedes its id. */
  prefixed?: boolean;
}

/** All behaviours at the same time, as in a busy worker. */
export async function everyEnding(operator: Operator, expected: Expected): Promise<void> {
  await Promise.all([
    values(operator),
    pipeline(operator),
    failures(operator, expected),
    retries(operator, expected),
    identity(operator),
    blobs(operator, expected),
    subRuns(operator),
    pathParameters(operator),
    missing(operator, expected),
    slow(operator),
  ]);
}

/** Runs one item and returns the run and the item. */
async function one(
  operator: Operator,
  component: string,
  input: unknown,
  step: Record<string, unknown> = {},
): Promise<Outcome & { item: Item }> {
  const outcome = await operator.run(flowOf(component, step), [input]);
  expect(outcome.items).toHaveLength(1);
  return { ...outcome, item: outcome.items[0] as Item };
}

async function values(operator: Operator): Promise<void> {
  expect((await one(operator, "/python/echo", VALUES)).item).toMatchObject({ status: "completed", output: VALUES });
}

async function pipeline(operator: Operator): Promise<void> {
  const step = (id: string, text: unknown) => ({ id, component: `/python/${id}`, input: { text } });
  const steps = [
    step("upper", { $input: "text" }),
    step("reverse", { $step: "upper", path: "text" }),
    step("echo", { $step: "reverse", path: "text" }),
  ];
  const output = { upper: { $step: "upper", path: "text" }, all: { $step: "echo" } };
  const inputs = [{ text: "hello" }, { text: "straße" }];
  const outcome = await operator.run({ name: "pipeline", description: "three steps", steps, output }, inputs);
  expect(outcome.items.map((item) => item.output)).toEqual([
    { upper: "HELLO", all: { text: "OLLEH" } },
    { upper: "STRASSE", all: { text: "ESSARTS" } },
  ]);
}

async function failures(operator: Operator, { failed }: Expected): Promise<void> {
  const input = { kind: "value", message: "it broke" };
  const { status, item } = await one(operator, "/python/fail", input);
  expect(status).toBe("failed");
  expect(item).toMatchObject({ status: "failed", code: failed, details: expect.stringContaining("it broke") });
  const byDefault = { onError: { action: "useDefault", defaultValue: { instead: true } } };
  expect((await one(operator, "/python/fail", input, byDefault)).item).toMatchObject({ status: "completed", output: { instead: true } });
}

async function retries(operator: Operator, { unavailable, retries: retried }: Expected): Promise<void> {
  const never = await one(operator, "/python/flaky", { failures: 1 });
  expect(never.item).toMatchObject({ status: "failed", code: unavailable, details: expect.stringContaining("not yet, attempt 1") });
  const again = await one(operator, "/python/flaky", { failures: 2 }, { onError: { action: "retry" } });
  expect(again.item).toMatchObject(retried ? { status: "completed", output: { attempt: 3 } } : { status: "failed" });
}

async function identity(operator: Operator): Promise<void> {
  const flow = flowOf("/python/whoami");
  const id = await operator.store(flow);
  const { runId, items } = await operator.run(id, [{}]);
  expect(items[0]?.output).toEqual({ run: runId, step: "s1", flow: id, attempt: 1 });
}

async function blobs(operator: Operator, { prefixed }: Expected): Promise<void> {
  const { item } = await one(operator, "/python/blob", { data: VALUES });
  expect(item.output).toEqual({ blob_id: expect.stringMatching(/^(sha256:)?[0-9a-f]{64}$/), matches: true });
  const blob_id = (item.output as { blob_id: string }).blob_id.replace(/^sha256:/, "");
  for (const id of prefixed ? [blob_id, `sha256:${blob_id}`] : [blob_id]) {
    expect((await one(operator, "/python/read_blob", { blob_id: id })).item.output).toEqual({ data: VALUES });
  }
}

async function subRuns(operator: Operator): Promise<void> {
  const flow_id = await operator.store(flowOf("/python/echo"));
  const { item } = await one(operator, "/python/sub", { flow_id, inputs: [{ k: 1 }, { k: 2 }] });
  expect(item.output).toEqual({ results: [{ k: 1 }, { k: 2 }] });
}

async function pathParameters(operator: Operator): Promise<void> {
  expect((await one(operator, "/python/core/some/where", { v: 1 })).item.output).toEqual({ path: "some/where", v: 1 });
}

async function missing(operator: Operator, expected: Expected): Promise<void> {
  const { item } = await one(operator, "/python/nosuch", {});
  expect(item).toMatchObject({ status: "failed", code: expected.missing.code, details: expect.stringContaining(expected.missing.text) });
}

async function slow(operator: Operator): Promise<void> {
  expect((await one(operator, "/python/slow", { seconds: SLOW_SECONDS })).item.output).toEqual({ slept: SLOW_SECONDS });
}

/** Long enough that the cancel arrives in the middle. */
const CANCELLED_SECONDS = 3;

/** A run is cancelled while its component works, and its worker continues with other runs. */
export async function cancelled(operator: Operator, worker: Pick<Child, "printed">): Promise<void> {
  const runId = await operator.start(flowOf("/python/slow"), [{ seconds: CANCELLED_SECONDS }]);
  await worker.printed(/slow begins/);
  await operator.cancel(runId);
  expect((await operator.read(runId)).status).toBe("cancelled");
  expect((await one(operator, "/python/echo", { after: true })).item.output).toEqual({ after: true });
}

/** An input above 4 MiB, the default limit of gRPC libraries, fails only its own step. The error contains the size. */
export async function largeInput(operator: Operator): Promise<void> {
  const [large, small] = await Promise.all([
    one(operator, "/python/echo", { text: "x".repeat(5 * 1024 * 1024) }),
    one(operator, "/python/echo", { text: "x" }),
  ]);
  expect(large.item).toMatchObject({ status: "failed", code: 2, details: expect.stringMatching(/the assignment has 5\d{6} bytes/) });
  expect(small.item).toMatchObject({ status: "completed", output: { text: "x" } });
  expect((await one(operator, "/python/echo", { again: true })).item.output).toEqual({ again: true });
}

/** The source of a function, an input, and the expected output. */
const FUNCTIONS: [code: string, input: Record<string, unknown>, output: unknown][] = [
  ["input['x'] + input['y']", { x: 3, y: 4 }, 7],
  ["input['x'] * input['y']", { x: 3, y: 4 }, 12],
  ["math.sqrt(input['x'] ** 2 + input['y'] ** 2)", { x: 3, y: 4 }, 5],
  ["def area(input):\n    return {'area': input['x'] * input['y']}\n", { x: 2, y: 5 }, { area: 10 }],
  ["{'words': len(input['text'].split()), 'loud': input['text'].upper()}", { text: "to be" }, { words: 2, loud: "TO BE" }],
];

/** Functions that are stored as blobs and run by the SDK's own component. Only for workers in Python. */
export async function functions(operator: Operator): Promise<void> {
  const call = async (code: string, input: Record<string, unknown>): Promise<Item> => {
    const data = { code, input_schema: { type: "object" } };
    const steps = [
      { id: "keep", component: "/builtin/put_blob", input: { data: { $literal: data }, blob_type: "data" } },
      { id: "call", component: "/python/udf", input: { blob_id: { $step: "keep", path: "blob_id" }, input: { $input: "$" } } },
    ];
    const { items } = await operator.run({ name: "function", description: "of a user", steps, output: { $step: "call" } }, [input]);
    return items[0] as Item;
  };
  for (const [code, input, output] of FUNCTIONS) expect(await call(code, input)).toMatchObject({ status: "completed", output });
  const failed = await call("def broken(input):\n    raise ValueError('not ' + input['what'])\n", { what: "today" });
  expect(failed).toMatchObject({ status: "failed", code: 3, details: expect.stringContaining("Function execution failed: not today") });
}

/** One run whose items each write a mark, numbered from `first`. With `ms`, each item takes this time. */
export function startMarks(operator: Operator, total: number, ms = 0, first = 0): Promise<string> {
  const inputs = Array.from({ length: total }, (_none, index) => ({ n: first + index, ms }));
  return operator.start(flowOf("/python/mark"), inputs, { maxConcurrency: CONCURRENCY });
}

/** Enough items to keep every worker busy. */
const CONCURRENCY = 20;

/** Waits until some items have begun, but long before all have. */
export async function someBegun(marks: Marks, some: number): Promise<void> {
  await until(`${some} items to be begun`, () => (marks.counts().size >= some ? true : undefined));
}

/** Checks that every item of such a run has ended with its own number. */
export async function allMarked(operator: Operator, runId: string, marks: Marks, total: number, first = 0): Promise<void> {
  const { status, items } = await operator.ended(runId);
  const numbers = Array.from({ length: total }, (_none, index) => first + index);
  expect(items.map(({ output, details }) => output ?? details)).toEqual(numbers.map((n) => ({ n })));
  expect(status).toBe("completed");
  const counts = marks.counts();
  expect(numbers.filter((n) => !counts.has(n))).toEqual([]);
}

export async function everyItemOnce(operator: Operator, marks: Marks, total: number, ms = 0): Promise<void> {
  await allMarked(operator, await startMarks(operator, total, ms), marks, total);
  expect([...marks.counts()].filter(([, times]) => times !== 1)).toEqual([]);
}
