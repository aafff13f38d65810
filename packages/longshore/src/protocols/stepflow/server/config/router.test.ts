import { describe, expect, it } from "vitest";
import type { Json } from "../../../../core/json/json.ts";
import { ReservedLanes } from "../../../../engine/board/reserved-lanes.ts";
import type { Documents } from "../../dialect/router.ts";
import { defaultConfig } from "./default.ts";
import { parseConfig } from "./parse.ts";
import { componentsBody, componentsKind, findComponent, pathOf, type RegisteredComponent } from "./registered-components.ts";
import { makeRouter } from "./router.ts";

const reserved = new ReservedLanes([]);

const none: Documents = () => null;

function routerOf(routes: string, plugins = "a: { type: grpc, queueName: a }, b: { type: grpc, queueName: b }") {
  const text = `plugins: { ${plugins} }\nroutes:\n${routes}\nretry: { transportMaxRetries: 2, backoff: { type: constant, delayMs: 5 } }`;
  return makeRouter(parseConfig(text, { file: "c.yml", environment: {} }).config, reserved);
}

/** The result in short: the plugin and the rest of the path, or why there is no route. */
function led(routes: string, component: string, input: Json = {}, documents = none): string {
  const found = routerOf(routes).route(component, input, documents);
  if ("failed" in found) return `${found.failed}: ${found.message}`;
  return "plugin" in found ? `${found.plugin} ${found.remainder}` : `? ${found.documents.map(({ name }) => name)}`;
}

function registered(lanes: { [lane: string]: string[] }): Documents {
  return (kind, name) => {
    const paths = lanes[name];
    if (kind !== componentsKind || paths === undefined) return null;
    return JSON.parse(componentsBody(paths.map((path): RegisteredComponent => ({ id: path, path })))) as Json;
  };
}

describe("routing by path", () => {
  it("chooses the longest prefix, and removes it from the path", () => {
    const routes = '  "/": [ { plugin: a } ]\n  "/x": [ { plugin: b } ]\n  "/x/y": [ { plugin: a } ]';
    expect(led(routes, "/x/y/z")).toBe("a /z");
    expect(led(routes, "/x/z")).toBe("b /z");
    expect(led(routes, "/xy/z")).toBe("a /xy/z");
    expect(led(routes, "noslash")).toBe("a /noslash");
  });

  it("tries the next best route when no rule of the best one accepts the step", () => {
    const routes = '  "/": [ { plugin: a } ]\n  "/x": [ { plugin: b, componentDeny: [secret] } ]';
    expect(led(routes, "/x/secret")).toBe("a /x/secret");
    expect(led(routes, "/x/other")).toBe("b /other");
  });

  it("a path that is the prefix itself has no component below it", () => {
    expect(led('  "/x": [ { plugin: b } ]', "/x")).toBe("ORCHESTRATOR_ERROR: error routing component: no route leads to '/x'");
    expect(led('  "/": [ { plugin: a } ]\n  "/x": [ { plugin: b } ]', "/x")).toBe("a /x");
  });

  it("distinguishes one segment from all that follow", () => {
    const routes = '  "/m/{component}": [ { plugin: a } ]\n  "/m/{*component}": [ { plugin: b } ]';
    expect(led(routes, "/m/one")).toBe("a /one");
    expect(led(routes, "/m/one/two")).toBe("b /one/two");
  });

  it("uses the component that a rule names, with the values that the pattern matched", () => {
    const routes =
      '  "/ai/chat": [ { plugin: a, component: openai } ]\n  "/v/{version}/{*rest}": [ { plugin: b, component: "/{rest}@{version}" } ]';
    expect(led(routes, "/ai/chat")).toBe("a /openai");
    expect(led(routes, "/ai/chat/more")).toContain("no route leads to");
    expect(led(routes, "/v/2/a/b")).toBe("b /a/b@2");
  });

  it("fails with this reason when no route matches", () => {
    expect(led('  "/x": [ { plugin: a } ]', "/y/z")).toBe("ORCHESTRATOR_ERROR: error routing component: no route leads to '/y/z'");
  });
});

describe("rules of a route", () => {
  it("accept only what they allow, with or without a leading slash", () => {
    const routes = '  "/x": [ { plugin: a, componentAllow: [one, "/two"] }, { plugin: b, component_deny: [three] } ]';
    expect(led(routes, "/x/three")).toContain("no route");
    const single = '  "/x": [ { plugin: a, componentAllow: [one, "/two"] } ]';
    expect([led(single, "/x/one"), led(single, "/x/two")]).toEqual(["a /one", "a /two"]);
    expect(led(routes, "/x/four")).toBe("b /four");
  });

  it("apply only when every condition is true", () => {
    const condition = '{ path: "$.model", value: llama }, { path: "$.options[\'top k\'][0]", value: { n: 1 } }';
    const routes = `  "/x": [ { plugin: a, conditions: [ ${condition} ] } ]\n  "/": [ { plugin: b } ]`;
    expect(led(routes, "/x/c", { model: "llama", options: { "top k": [{ n: 1 }] } })).toBe("a /c");
    expect(led(routes, "/x/c", { model: "llama", options: { "top k": [{ n: 2 }] } })).toBe("b /x/c");
    expect(led(routes, "/x/c", { model: "gpt", options: {} })).toBe("b /x/c");
  });

  it("fail a step whose input lacks what a condition reads", () => {
    const routes = '  "/x": [ { plugin: a, conditions: [ { path: "$.model", value: llama } ] } ]';
    expect(led(routes, "/x/c", {})).toBe(
      "ORCHESTRATOR_ERROR: error routing component: the input has no '$.model', which a condition of '/x' reads",
    );
  });
});

describe("several rules that accept a step", () => {
  const both = '  "/": [ { plugin: a }, { plugin: b } ]';

  it("are distinguished by the components that their workers have registered, which are loaded first", () => {
    expect(led(both, "/c", {}, () => undefined)).toBe("? stepflow:a,stepflow:b");
    expect(led(both, "/c", {}, registered({ "stepflow:a": ["/other"], "stepflow:b": ["/c"] }))).toBe("b /c");
    expect(led(both, "/c/1", {}, registered({ "stepflow:a": ["/c"], "stepflow:b": ["/c/{n}"] }))).toBe("b /c/1");
  });

  it("leave the step to the first rule whose workers are unknown, else to the first rule", () => {
    expect(led(both, "/c")).toBe("a /c");
    expect(led(both, "/c", {}, registered({ "stepflow:a": ["/other"] }))).toBe("b /c");
    expect(led(both, "/c", {}, registered({ "stepflow:a": ["/other"], "stepflow:b": ["/other"] }))).toBe("a /c");
  });

  it("without a configuration, lead to workers of other protocols, except when a Stepflow worker has the component", () => {
    const router = makeRouter(defaultConfig(), reserved);
    expect(router.route("/greet", { name: "Ada" }, none)).toMatchObject({
      plugin: "longshore",
      lanes: [{ name: "greet", labels: [] }],
      given: { name: "Ada" },
    });
    expect(router.route("/greet", 1, registered({ "stepflow:default": ["/greet"] }))).toMatchObject({
      plugin: "default",
      lanes: [{ name: "stepflow:default" }],
      given: { component: "/greet", input: 1 },
    });
  });
});

describe("the settings of a task", () => {
  it("include how long it may wait and run, how long its worker may be silent, and how often it is retried", () => {
    const router = routerOf(
      '  "/": [ { plugin: a, queueName: fast } ]',
      "a: { type: grpc, queueName: q, queueTimeoutSecs: 7, executionTimeoutSecs: 9 }",
    );
    expect(router.route("/c", [1], none)).toEqual({
      plugin: "a",
      remainder: "/c",
      params: { queueName: "fast" },
      lanes: [{ name: "stepflow:fast", labels: [] }],
      given: { component: "/c", input: [1] },
      transport: { retries: 2, backoff: { kind: "fixed", delayMs: 5 } },
      timeouts: { claimMs: 7_000, endMs: 9_000 },
      holdMs: 5_000,
    });
  });

  it("allow any number of hand-outs after restarts when it runs in this process", () => {
    const plugins = "a: { type: builtin }, b: { type: mock }";
    const router = routerOf('  "/x": [ { plugin: a } ]\n  "/y": [ { plugin: b } ]', plugins);
    expect(router.route("/x/noop", 1, none)).toMatchObject({
      lanes: [{ name: "stepflow-builtin" }],
      transport: { retries: Number.MAX_SAFE_INTEGER },
    });
    expect(router.route("/y/c", 1, none)).toMatchObject({ lanes: [{ name: "stepflow-mock:b" }], transport: { retries: 2 } });
  });

  it("use the plugin's own lane when the plugin is called by the server", () => {
    const router = routerOf('  "/": [ { plugin: a } ]', 'a: { type: stepflow, url: "http://h:1" }');
    expect(router.route("/c", 1, none)).toMatchObject({ lanes: [{ name: "stepflow-http:a" }], given: { component: "/c", input: 1 } });
  });
});

describe("registered components", () => {
  const components: RegisteredComponent[] = [
    { id: "core", path: "/core/{*path}" },
    { id: "one", path: "/core/{name}/info" },
    { id: "echo", path: "/echo" },
    { id: "odd", path: "/{*x}/y" },
  ];

  it("are found by path, literal paths first, with the values of the path's parameters", () => {
    expect(findComponent(components, "/echo")).toEqual({ component: components[2], params: {} });
    expect(findComponent(components, "/core/a/b")).toEqual({ component: components[0], params: { path: "a/b" } });
    expect(findComponent(components, "core/a/info")).toEqual({ component: components[1], params: { name: "a" } });
    expect(findComponent(components, "/nothing")).toBeNull();
  });

  it("are found by their id when an older worker sends no path", () => {
    expect([pathOf("/udf", ""), pathOf("udf", undefined), pathOf("x", "/y")]).toEqual(["/udf", "/udf", "/y"]);
  });
});
