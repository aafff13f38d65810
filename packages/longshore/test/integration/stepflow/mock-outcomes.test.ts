// The scenarios of the specification's section 9.1 with mock components, on a real server whose configuration has the components of the
// reference's own tests.

import { expect, it } from "vitest";
import type { Json, JsonObject } from "../../../src/core/json/json.ts";
import { parseConfig } from "../../../src/protocols/stepflow/server/config/parse.ts";
import { either, ref } from "../../support/flow-world.ts";
import { type Body, oneStep, startStepflow } from "../../support/stepflow-server.ts";

const configuration = `
plugins:
  builtin: { type: builtin }
  mock:
    type: mock
    components:
      /one_output:
        behaviors:
          { input: a }: { outcome: success, result: { output: b } }
          { input: hello }: { outcome: success, result: { output: world } }
      /two_outputs:
        behaviors:
          { input: b }: { outcome: success, result: { x: 1, y: 2 } }
          { input: world }: { outcome: success, result: { x: 2, y: 8 } }
      /error:
        behaviors:
          { mode: error }: { outcome: failed, error: { code: COMPONENT_FAILED, message: test error, data: { why: [1] } } }
          { mode: succeed }: { outcome: success, result: { output: succeeded } }
routes:
  "/builtin": [ { plugin: builtin } ]
  "/mock": [ { plugin: mock } ]
retry: { backoff: { type: constant, delayMs: 1 } }
`;

/** The outcome of a flow with its complete error, and how often each of its steps was started. */
async function setup() {
  const { config } = parseConfig(configuration, { file: "stepflow-config.yml", environment: {} });
  const server = await startStepflow({ config });
  const play = async (flow: JsonObject, input: Json): Promise<{ result: Body; begun: { [step: string]: number } }> => {
    const inner = { flow_id: await server.store(flow), input: { $input: "$" } };
    const { results } = await server.run(oneStep("/builtin/eval", inner), [input]);
    const { result, run_id } = results[0].output;
    const begun: { [step: string]: number } = {};
    for (const { data } of await (await server.events(run_id, "?eventTypes=STEP_STARTED")).rest()) {
      const { stepId, attempt } = JSON.parse(data).event.StepStarted;
      begun[stepId] = attempt;
    }
    return { result, begun };
  };
  return { ...server, play };
}

const chained: JsonObject = {
  steps: [
    { id: "step1", component: "/mock/one_output", input: { input: { $input: "name" } } },
    { id: "step2", component: "/mock/two_outputs", input: { input: ref("step1", "output") } },
  ],
  output: { name: ref("step1", "output"), x: ref("step2", "x"), y: ref("step2", "y") },
};
const faulty = (onError: JsonObject = {}): JsonObject => ({
  steps: [{ id: "s", component: "/mock/error", input: { mode: { $input: "mode" } }, ...onError }],
  output: { out: ref("s") },
});
const error = { code: "COMPONENT_FAILED", message: "test error", data: { why: [1] } };
const fine = { outcome: "success", result: { out: { output: "succeeded" } } };

it("[S9-7] the second of two chained mocks responds to the output of the first", async () => {
  const { play } = await setup();
  expect((await play(chained, { name: "a" })).result).toEqual({ outcome: "success", result: { name: "b", x: 1, y: 2 } });
  expect((await play(chained, { name: "hello" })).result).toEqual({ outcome: "success", result: { name: "world", x: 2, y: 8 } });
});

it("[S9-8] an input without a configured behaviour fails as unreachable, with the reference's message, and our own API has the reason", async () => {
  const { play, url } = await setup();
  const { result, begun } = await play(chained, { name: "world" });
  const reason = 'No behavior defined for /one_output on {"input":"world"}';
  const attachments = ["Component: /one_output", "Component execution failed for step 'step1'", reason];
  expect(result).toEqual({
    outcome: "failed",
    error: {
      code: "UNREACHABLE",
      message: 'step "step1" failed',
      data: {
        stack: [
          { error: 'step "step1" failed', attachments },
          { error: "error executing user-defined function", attachments: [] },
        ],
      },
    },
  });
  expect(begun).toEqual({ step1: 1 });
  const { items } = (await (await fetch(`${url}/api/longshore/v1/tasks?state=failed`)).json()) as Body;
  expect(items).toContainEqual(expect.objectContaining({ step: "step1", error: `step "step1" failed: ${reason}` }));
});

it("[S9-9] a mock that fails fails its run with the same code, message and data", async () => {
  const { play } = await setup();
  expect(await play(faulty(), { mode: "error" })).toMatchObject({ result: { outcome: "failed", error }, begun: { s: 1 } });
  expect((await play(faulty(), { mode: "succeed" })).result).toEqual(fine);
});

it("[S9-10, S9-11] a default replaces a failed value: null, or the configured value", async () => {
  const { play } = await setup();
  const withDefault = (value: JsonObject) => faulty({ onError: { action: "useDefault", ...value } });
  expect((await play(withDefault({}), { mode: "error" })).result).toEqual({ outcome: "success", result: { out: null } });
  const defaultValue = { output: "as written" };
  expect((await play(withDefault({ defaultValue }), { mode: "error" })).result).toEqual({
    outcome: "success",
    result: { out: defaultValue },
  });
  expect((await play(withDefault({ defaultValue }), { mode: "succeed" })).result).toEqual(fine);
});

it("[S9-12] two retries are three attempts, and a success is not repeated", async () => {
  const { play } = await setup();
  const flow = faulty({ onError: { action: "retry", maxRetries: 2 } });
  expect(await play(flow, { mode: "error" })).toMatchObject({ result: { outcome: "failed", error }, begun: { s: 3 } });
  expect(await play(flow, { mode: "succeed" })).toMatchObject({ result: fine, begun: { s: 1 } });
});

it("[S9-13, S9-14] only the chosen branch is executed, and its failure is reported", async () => {
  const { play } = await setup();
  const flow: JsonObject = {
    steps: [
      { id: "yes", component: "/mock/error", input: { mode: "succeed" } },
      { id: "no", component: "/mock/error", input: { mode: "error" } },
    ],
    output: either({ $input: "go" }, ref("yes", "output"), ref("no", "output")),
  };
  expect(await play(flow, { go: true })).toMatchObject({ result: { outcome: "success", result: "succeeded" }, begun: { yes: 1 } });
  expect((await play(flow, { go: true })).begun).not.toHaveProperty("no");
  const other = await play(flow, { go: false });
  expect(other.result).toEqual({ outcome: "failed", error });
  expect(other.begun).toEqual({ no: 1 });
});
