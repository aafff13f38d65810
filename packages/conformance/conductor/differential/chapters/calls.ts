// Tasks that call other servers. The server that they call is the one that runs them: `{{server}}`.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { define, defined, done, step, TYPE } from "../operator-steps.ts";
import { operator, post, quick, reaches, run, runUntil, start, taskDefs } from "../steps.ts";

const call = (inputParameters: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  operator("HTTP", "call", { inputParameters, ...more });

/** A run of one call that ends by itself. */
const alone = (name: string, task: unknown, status = "COMPLETED"): Step[] => [
  defined(`ca_${name}`, define(task)),
  start(`start ${name}`, { name: `ca_${name}` }),
  reaches(`${name} ends`, status),
  run(`${name}, the run`),
];

export const calls: Chapter = {
  name: "operator-http",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    ...alone("get", call({ uri: "{{server}}/api/workflow/running/ca_none", method: "GET" })),
    ...alone(
      "nested",
      call({ http_request: { uri: "{{server}}/api/workflow/running/ca_none?version=1", method: "GET", headers: { "x-mine": "v" } } }),
    ),
    ...alone(
      "put",
      call({ uri: "{{server}}/api/workflow/bulk/pause", method: "PUT", body: ["ca_nobody"], contentType: "application/json" }),
    ),
    ...alone("text", call({ uri: "{{server}}/api/workflow", method: "POST", body: { name: "ca_get" }, accept: "text/plain" })),
    defined(
      "ca_chain",
      define(
        call({ uri: "{{server}}/api/workflow/running/ca_none", method: "GET" }),
        step("after", { body: "${call.output.response.body}", code: "${call.output.response.statusCode}" }),
      ),
    ),
    start("start a chain", { name: "ca_chain" }),
    runUntil("after the call", /"referenceTaskName":"after"/),
    defined(
      "ca_async",
      define(
        call({ uri: "{{server}}/api/workflow/running/ca_none", method: "GET" }, { asyncComplete: true }),
        step("after", { got: "${call.output}" }),
      ),
    ),
    start("asynchronously", { name: "ca_async" }),
    runUntil("asynchronously, called", /"statusCode":200/),
    done("asynchronously, completed", "call", { later: true }),
    runUntil("asynchronously, continued", /"referenceTaskName":"after"/),
    start("asynchronously, to fail", { name: "ca_async" }),
    runUntil("asynchronously, called to fail", /"statusCode":200/),
    post("asynchronously, failed", "/tasks/{{wf}}/call/FAILED", { why: "told so" }),
    reaches("asynchronously, ended", "FAILED"),
    defined(
      "ca_async_input",
      define(call({ uri: "{{server}}/api/workflow/running/ca_none", method: "GET", asyncComplete: true }), step("after")),
    ),
    start("asynchronously by the input", { name: "ca_async_input" }),
    runUntil("asynchronously by the input, called", /"statusCode":200/),
    ...alone("no_server", call({ uri: "http://127.0.0.1:1/", method: "GET" }), "FAILED"),
    ...alone("no_method", call({ uri: "{{server}}/", method: null }), "FAILED"),
    ...alone("no_uri", call({ http_request: { method: "GET" } }), "FAILED"),
    defined("ca_nothing", define(call({}))),
    defined("ca_optional", define(call({ uri: "http://127.0.0.1:1/", method: "GET" }, { optional: true }), step("after"))),
    start("an optional call", { name: "ca_optional" }),
    runUntil("an optional call, the run", /"referenceTaskName":"after"/),
  ],
};
