// Flows: which are stored, which problems are reported, and which are refused.
import type { Chapter } from "../../../src/differential/script.ts";
import { del, flow, get, post, run, step, store } from "../steps.ts";

const noop = step("s1", "/builtin/noop");
const fine = flow([noop], { $step: "s1" });

export const health: Chapter = {
  name: "health",
  steps: [
    get("health", "/health"),
    get("an unknown path", "/nothing"),
    del("a wrong method", "/health"),
    post("no body at all", "/flows"),
    post("a body that is no JSON", "/flows", '{"flo'),
    {
      name: "a body that is not called JSON",
      method: "POST",
      path: "/api/v1/flows",
      headers: { "content-type": "text/plain" },
      body: "{}",
    },
  ],
};

export const flows: Chapter = {
  name: "flows",
  steps: [
    store("store", fine),
    store("store again", fine),
    store("keys in another order", { output: { $step: "s1" }, steps: [noop], description: "a flow", name: "flow" }),
    get("read", "/flows/{{flow}}"),
    post("a dry run", "/flows", { flow: flow([noop], { $step: "s1" }, { name: "dry" }), dryRun: true }, { keep: { dry: "flowId" } }),
    get("read what was not stored", "/flows/{{dry}}"),
    get("read an unknown one", `/flows/${"0".repeat(64)}`),
    get("read by a bad id", "/flows/abc"),
    get("variables of one without", "/flows/{{flow}}/variables"),
    get("variables of an unknown one", `/flows/${"0".repeat(64)}/variables`),
    del("delete", "/flows/{{flow}}"),
    get("read what was deleted", "/flows/{{flow}}"),
    del("delete an unknown one", `/flows/${"0".repeat(64)}`),
    post("without a flow", "/flows", {}),
    post("a flow that is a list", "/flows", { flow: [] }),
    post("steps that are no list", "/flows", { flow: flow({} as never, null) }),
    post("a step without an id", "/flows", { flow: flow([{ component: "/builtin/noop" }], null) }),
    post("a step without a component", "/flows", { flow: flow([{ id: "s1" }], null) }),
    post("an action that there is not", "/flows", { flow: flow([step("s1", "/builtin/noop", {}, { onError: { action: "skip" } })], null) }),
    post("the old $from", "/flows", { flow: flow([step("s1", "/builtin/noop", { $from: { workflow: "input" } })], null) }),
    post("a flat map of schemas", "/flows", { flow: flow([], null, { schemas: { input: { type: "object" } } }) }),
  ],
};

const variables = {
  type: "object",
  properties: {
    variables: {
      type: "object",
      properties: {
        plain: { type: "string" },
        told: { type: "number", default: 7, description: "a number" },
        fromOutside: { type: "string", env_var: "FROM_OUTSIDE", is_secret: true },
      },
      required: ["plain"],
    },
  },
};

export const diagnostics: Chapter = {
  name: "diagnostics",
  steps: [
    store("no name and no description", { steps: [noop], output: { $step: "s1" } }),
    store("an empty flow", {}),
    store("two steps of one id", flow([noop, noop], { $step: "s1" })),
    store("an empty id", flow([step("", "/builtin/noop")], null)),
    store("a step that refers to itself", flow([step("s1", "/builtin/noop", { $step: "s1" })], { $step: "s1" })),
    store("a reference forward", flow([step("a", "/builtin/noop", { $step: "b" }), step("b", "/builtin/noop")], { $step: "a" })),
    store("a step that there is not", flow([noop], { $step: "nobody" })),
    store("a step that nobody needs", flow([noop, step("s2", "/builtin/noop")], { $step: "s1" })),
    store("a step that must be executed", flow([noop, step("s2", "/builtin/noop", {}, { mustExecute: true })], { $step: "s1" })),
    store("an empty component", flow([step("s1", "")], { $step: "s1" })),
    store("a component without a slash", flow([step("s1", "noop")], { $step: "s1" })),
    store("a component that no route takes", flow([step("s1", "/nowhere/noop")], { $step: "s1" })),
    store("a component that its plugin has not", flow([step("s1", "/builtin/nothing")], { $step: "s1" })),
    store("a mock component", flow([step("s1", "/mock/one")], { $step: "s1" })),
    store("a field of a step without a schema", flow([noop], { $step: "s1", path: "x" })),
    store("a field of the input", flow([], { $input: "name" })),
    store("a field of the input that its schema has not", {
      ...flow([], { $input: "nam" }),
      schemas: { type: "object", properties: { input: { type: "object", properties: { name: { type: "string" } } } } },
    }),
    store("a variable without a schema", flow([], { $variable: "v" })),
    store("a variable that the schema has not", flow([], { $variable: "other" }, { schemas: variables })),
    store("variables", flow([], { $variable: "told" }, { schemas: variables })),
    get("the variables of it", "/flows/{{flow}}/variables"),
    run("the required variable is missing", [{}]),
    run("the required variable is told", [{}], { variables: { plain: "p" } }),
    run("another value", [{}], { variables: { plain: "p", told: 8 } }),
    run("a value of another type", [{}], { variables: { plain: 1 } }),
    run("a variable that nobody declared", [{}], { variables: { plain: "p", extra: true } }),
  ],
};
