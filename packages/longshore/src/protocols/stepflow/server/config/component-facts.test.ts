import { describe, expect, it } from "vitest";
import { type BuiltinFact, routeFacts } from "./component-facts.ts";
import { defaultConfig } from "./default.ts";
import { parseConfig } from "./parse.ts";

const text = `
plugins:
  builtin: { type: builtin }
  a: { type: grpc, queueName: a }
  b: { type: grpc, queueName: b }
  m: { type: mock, components: { "/x": { input_schema: { type: string }, output_schema: { type: integer }, behaviors: {} } } }
routes:
  "/builtin": [ { plugin: builtin } ]
  "/mock": [ { plugin: m, componentDeny: ["/secret"] } ]
  "/maybe": [ { plugin: a, conditions: [ { path: $.go, value: true } ] } ]
  "/": [ { plugin: b, componentAllow: ["/maybe/c", "/d"] } ]
`;
const noop: BuiltinFact = { path: "/noop", inputSchema: {}, outputSchema: { type: "null" } };
const facts = routeFacts(parseConfig(text, { file: "c.yml", environment: {} }).config, [noop]);

describe("the facts of a configuration", () => {
  it("name plugins and rules as they are written", () => {
    expect(facts.plugins).toEqual(["builtin", "a", "b", "m"]);
    expect(facts.routes[3]).toEqual({ path: "/", plugins: ["b"] });
  });

  it("are every plugin that might take a component, for any input", () => {
    expect(facts.candidates("/maybe/c").map(({ plugin, remainder }) => [plugin, remainder])).toEqual([
      ["a", "/c"],
      ["b", "/maybe/c"],
    ]);
    expect(facts.candidates("/d")).toEqual([{ plugin: "b", type: "grpc", remainder: "/d" }]);
    expect(facts.candidates("/elsewhere")).toEqual([]);
    expect(facts.candidates("/mock/secret")).toEqual([]);
    expect(
      routeFacts(defaultConfig())
        .candidates("/greet")
        .map(({ plugin }) => plugin),
    ).toEqual(["default", "longshore"]);
  });

  it("have the schemas of mocks and built-ins", () => {
    expect(facts.candidates("/mock/x")).toEqual([
      { plugin: "m", type: "mock", remainder: "/x", inputSchema: { type: "string" }, outputSchema: { type: "integer" } },
    ]);
    expect(facts.candidates("/mock/y")).toEqual([{ plugin: "m", type: "mock", remainder: "/y" }]);
    expect(facts.candidates("/builtin/noop")).toEqual([
      { plugin: "builtin", type: "builtin", remainder: "/noop", inputSchema: {}, outputSchema: { type: "null" } },
    ]);
  });
});
