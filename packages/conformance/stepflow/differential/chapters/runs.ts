// Runs: start, wait, every way to read, control, refusals. And the built-in components.
import type { Chapter } from "../../../src/differential/script.ts";
import { del, flow, get, post, run, step, store, storeAndRun } from "../steps.ts";

const echo = flow([step("s1", "/builtin/noop")], { $step: "s1" });
const UNKNOWN_RUN = "01a1e401-4a8b-76e2-9b13-aaa8a8ff9c0e";

export const runs: Chapter = {
  name: "runs",
  steps: [
    store("store", echo),
    run("wait for it", [{ k: 1 }]),
    get("read", "/runs/{{run}}"),
    get("read and wait", "/runs/{{run}}?wait=true&timeoutSecs=1"),
    get("items", "/runs/{{run}}/items"),
    get("items by completion", "/runs/{{run}}/items?resultOrder=2"),
    get("its flow", "/runs/{{run}}/flow"),
    get("steps", "/runs/{{run}}/steps"),
    get("steps of an item", "/runs/{{run}}/steps?itemIndex=0"),
    get("steps of an item that is not there", "/runs/{{run}}/steps?itemIndex=7"),
    get("one step", "/runs/{{run}}/steps/s1"),
    get("one step that is not there", "/runs/{{run}}/steps/nothing"),
    get("events", "/runs/{{run}}/events?runId={{run}}"),
    get("events from the third on", "/runs/{{run}}/events?runId={{run}}&since=2"),
    get("events with results", "/runs/{{run}}/events?runId={{run}}&includeResults=true"),
    get("events of one type", "/runs/{{run}}/events?runId={{run}}&eventTypes=6"),
    get("listed", "/runs?limit=1"),
    get("listed by status", "/runs?status=2&limit=1"),
    get("listed by another status", "/runs?status=4"),
    get("listed by name", "/runs?flowName=flow&limit=1"),
    get("listed by a name that nobody has", "/runs?flowName=nothing"),
    get("listed by root", "/runs?rootRunId={{run}}"),
    get("children", "/runs?parentRunId={{run}}"),
    get("listed with a bad limit", "/runs?limit=abc"),
    post("without waiting", "/runs", { flowId: "{{flow}}", input: [{ k: 2 }] }, { keep: { later: "summary.runId" } }),
    get("until it is over", "/runs/{{later}}?wait=true", { until: /"status":2/ }),
    run("several items", [{ i: 0 }, { i: 1 }, { i: 2 }], { maxConcurrency: 1 }),
    get("the steps of all items", "/runs/{{run}}/steps"),
    run("no items", []),
    del("delete", "/runs/{{run}}"),
    get("read what was deleted", "/runs/{{run}}"),
  ],
};

export const refusedRuns: Chapter = {
  name: "refused-runs",
  steps: [
    store("store", echo),
    post("nothing", "/runs", {}),
    post("no flow", "/runs", { input: [{}], wait: true }),
    post("a bad flow id", "/runs", { flowId: "abc", input: [{}] }),
    post("an unknown flow", "/runs", { flowId: "0".repeat(64), input: [{}] }),
    post("no input", "/runs", { flowId: "{{flow}}", wait: true }),
    post("an input that is no list", "/runs", { flowId: "{{flow}}", input: {}, wait: true }),
    post("a concurrency below nothing", "/runs", { flowId: "{{flow}}", input: [{}], wait: true, maxConcurrency: -1 }),
    get("an unknown run", `/runs/${UNKNOWN_RUN}`),
    get("a bad run id", "/runs/abc"),
    get("items of an unknown run", `/runs/${UNKNOWN_RUN}/items`),
    get("steps of an unknown run", `/runs/${UNKNOWN_RUN}/steps`),
    get("a step of an unknown run", `/runs/${UNKNOWN_RUN}/steps/s1`),
    get("the flow of an unknown run", `/runs/${UNKNOWN_RUN}/flow`),
    get("events of an unknown run", `/runs/${UNKNOWN_RUN}/events?runId=${UNKNOWN_RUN}`),
    post("cancel an unknown run", `/runs/${UNKNOWN_RUN}/cancel`),
    post("cancel by a bad id", "/runs/abc/cancel"),
    del("delete an unknown run", `/runs/${UNKNOWN_RUN}`),
  ],
};

const override = (value: unknown, more: Record<string, unknown> = {}) => ({ overrides: { steps: { s1: { ...more, value } } } });

export const overrides: Chapter = {
  name: "overrides",
  steps: [
    store("store", flow([step("s1", "/builtin/noop", { a: 1, b: { c: 2, d: 3 } })], { $step: "s1" })),
    run("none", [{}]),
    run("an empty map", [{}], { overrides: {} }),
    run("a field of the input", [{}], override({ input: { b: { c: 9 } } })),
    run("a field taken away", [{}], override({ input: { a: null } })),
    run("by name of the method", [{}], override({ input: { a: 5 } }, { $type: "merge_patch" })),
    run("by a method that there is not", [{}], override({ input: { a: 5 } }, { $type: "json_patch" })),
    run("another component", [{}], override({ component: "/builtin/nothing" })),
    run("a step that there is not", [{}], { overrides: { steps: { nobody: { value: {} } } } }),
    run("an id that is changed", [{}], override({ id: "other" })),
    run("without a value", [{}], { overrides: { steps: { s1: {} } } }),
  ],
};

const sub = (output: unknown) => ({ name: "sub", description: "one more", steps: [], output });
/** A step's input is resolved with the outer flow's input, also inside an inner flow, except when it is a literal. */
const inner = (output: unknown) => ({ $literal: sub(output) });
const takesK = { k: { $input: "k" } };
const golden = { message: "Hello, blobs!", number: 42, nested: { array: [1, 2, 3], boolean: true } };

export const builtIns: Chapter = {
  name: "built-ins",
  steps: [
    storeAndRun("create_messages", flow([step("s", "/builtin/create_messages", { user_prompt: "Hello" })], { $step: "s" })),
    storeAndRun(
      "create_messages with instructions",
      flow([step("s", "/builtin/create_messages", { system_instructions: "Be brief.", user_prompt: "Hello" })], { $step: "s" }),
    ),
    storeAndRun("create_messages without a prompt", flow([step("s", "/builtin/create_messages", {})], { $step: "s" })),
    storeAndRun("noop", flow([step("s", "/builtin/noop", { any: ["thing"] })], { $step: "s" })),
    // The number comes from the input, because the real server turns every number in a flow into a double, and accepts no double here.
    storeAndRun("sleep", flow([step("s", "/builtin/sleep")], { $step: "s" }), { duration_ms: 5, passthrough: { k: 1 } }),
    storeAndRun("sleep for no number", flow([step("s", "/builtin/sleep", { duration_ms: "long" })], { $step: "s" })),
    // Only one key, because the real server shuffles the keys of a flow, and so the id would change each time.
    storeAndRun("put_blob", flow([step("s", "/builtin/put_blob", { data: { k: "v" }, blob_type: "data" })], { $step: "s" })),
    storeAndRun(
      "put_blob, then get_blob",
      flow(
        [
          step("p", "/builtin/put_blob", { data: { k: [1] }, blob_type: "data" }),
          step("g", "/builtin/get_blob", { blob_id: { $step: "p", path: "blob_id" } }),
        ],
        {
          p: { $step: "p" },
          g: { $step: "g" },
        },
      ),
    ),
    storeAndRun("get_blob of nothing", flow([step("s", "/builtin/get_blob", { blob_id: "0".repeat(64) })], { $step: "s" })),
    storeAndRun("map", flow([step("s", "/builtin/map", { workflow: inner(takesK), items: [{ k: 1 }, { k: 2 }] })], { $step: "s" })),
    storeAndRun("map of nothing", flow([step("s", "/builtin/map", { workflow: inner(takesK), items: [] })], { $step: "s" })),
    storeAndRun(
      "map with a failure",
      flow([step("s", "/builtin/map", { workflow: inner(takesK), items: [{ k: 1 }, {}] })], { $step: "s" }),
    ),
    storeAndRun(
      "map of a flow that is no literal",
      flow([step("s", "/builtin/map", { workflow: sub({ $input: "k" }), items: [{}] })], { $step: "s" }),
      { k: 1 },
    ),
    store("store the flow to evaluate", sub(takesK), "sub"),
    storeAndRun(
      "eval",
      flow([step("s", "/builtin/eval", { flow_id: { $input: "id" }, input: { k: 5 } })], { $step: "s", path: "result" }),
      { id: "{{sub}}" },
    ),
    storeAndRun(
      "eval of a flow that fails",
      flow([step("s", "/builtin/eval", { flow_id: { $input: "id" }, input: {} })], { $step: "s", path: "result" }),
      { id: "{{sub}}" },
    ),
    storeAndRun("eval of an unknown flow", flow([step("s", "/builtin/eval", { flow_id: "0".repeat(64), input: {} })], { $step: "s" })),
    storeAndRun(
      "iterate to the end",
      flow([step("s", "/builtin/iterate", { flow: inner({ result: { $input: "k" } }), initial_input: { k: 1 } })], { $step: "s" }),
    ),
    storeAndRun(
      "iterate to the limit",
      flow(
        [step("s", "/builtin/iterate", { flow: inner({ next: takesK }), initial_input: { k: 1 }, max_iterations: { $input: "most" } })],
        { $step: "s" },
      ),
      { most: 3 },
    ),
    storeAndRun(
      "iterate over something else",
      flow([step("s", "/builtin/iterate", { flow: inner(takesK), initial_input: { k: 1 } })], { $step: "s" }),
    ),
    storeAndRun("load_file that is not there", flow([step("s", "/builtin/load_file", { path: "nothing.json" })], { $step: "s" })),
    get("components without schemas", "/components?excludeSchemas=true"),
  ].flat(),
};

const GOLDEN_ID = "868591347a854ba1d0f4875b2dd44e1e8335052af03725a9819f89e0142318b0";
const octets = { "content-type": "application/octet-stream" };

export const blobs: Chapter = {
  name: "blobs",
  steps: [
    post("put", "/blobs", { data: golden, blobType: "data" }),
    post("put again", "/blobs", { data: golden, blobType: "data" }),
    get("get", `/blobs/${GOLDEN_ID}`),
    post("put by another name of the field", "/blobs", { json_data: { k: 1 }, blob_type: "data" }),
    post("put without a type", "/blobs", { data: { k: 2 } }),
    post("put with a name", "/blobs", { data: { k: 3 }, filename: "three.json" }, { keep: { named: "blobId" } }),
    get("get with a name", "/blobs/{{named}}"),
    post("put of an unknown type", "/blobs", { data: {}, blobType: "other" }),
    post("put without data", "/blobs", { blobType: "data" }),
    post("put null", "/blobs", { data: null }),
    { name: "put bytes", method: "POST", path: "/api/v1/blobs", headers: octets, body: "bytes", keep: { raw: "blobId" } },
    get("get bytes as JSON", "/blobs/{{raw}}"),
    get("get bytes as bytes", "/blobs/{{raw}}", { headers: { accept: "application/octet-stream" } }),
    {
      name: "put bytes with a name",
      method: "POST",
      path: "/api/v1/blobs",
      headers: { ...octets, "x-blob-filename": "some.bin" },
      body: "more",
    },
    get("get JSON as bytes", `/blobs/${GOLDEN_ID}`, { headers: { accept: "application/octet-stream" } }),
    get("get what there is not", `/blobs/${"0".repeat(64)}`),
    get("get by a bad id", "/blobs/abc"),
  ],
};
