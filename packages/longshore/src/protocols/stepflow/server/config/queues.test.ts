import { describe, expect, it } from "vitest";
import { defaultConfig } from "./default.ts";
import { parseConfig } from "./parse.ts";
import { queuesOf } from "./queues.ts";

const plugins = "plugins: { q: { type: grpc, queueName: q }, l: { type: longshore } }\n";

function sharedIn(routes: string): string[] {
  const { config } = parseConfig(`${plugins}routes: ${routes}\n`, { file: "c.yml", environment: {} });
  return queuesOf(config).flatMap(({ name, shared }) => (shared ? [name] : []));
}

describe("queues of a configuration", () => {
  it("are shared with workers of other protocols when a route leads to both", () => {
    expect(sharedIn('{ "/": [ { plugin: q }, { plugin: l } ] }')).toEqual(["q"]);
    expect(sharedIn('{ "/x": [ { plugin: l }, { plugin: q, queueName: gpu } ], "/": [ { plugin: q } ] }')).toEqual(["gpu"]);
    expect(
      queuesOf(defaultConfig())
        .filter(({ shared }) => shared)
        .map(({ name }) => name),
    ).toEqual(["default"]);
  });

  it.each([
    '{ "/q": [ { plugin: q } ], "/": [ { plugin: l } ] }',
    '{ "/": [ { plugin: q, componentAllow: [ /a ] }, { plugin: l } ] }',
    '{ "/": [ { plugin: q }, { plugin: l, componentDeny: [ /a ] } ] }',
    '{ "/": [ { plugin: q, conditions: [ { path: $.a, value: 1 } ] }, { plugin: l } ] }',
  ])("are not where the route keeps components apart: %s", (routes) => {
    expect(sharedIn(routes)).toEqual([]);
  });
});
