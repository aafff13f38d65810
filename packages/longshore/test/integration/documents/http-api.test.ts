// Compares docs/reference/http-api.md and limits.md with a server: the operations of its OpenAPI document, the names in /metrics, and its
// limits.

import { afterAll, beforeAll, expect, it } from "vitest";
import { httpLimits } from "../../../src/net/listener/limits.ts";
import { apiPrefix } from "../../../src/protocols/longshore/wire/shapes.ts";
import { workerMetrics } from "../../../src/runner/instruments.ts";
import { type Server, serve } from "../../../src/server/index.ts";
import { readDocument, section, unquoted } from "../../support/markdown.ts";

const api = readDocument("docs/reference/http-api.md");
let server: Server;

beforeAll(async () => {
  server = await serve({ ephemeral: true, port: 0 });
});

afterAll(() => server.close());

interface Described {
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
}

it("the operations of docs/reference/http-api.md are those of the OpenAPI document, with their scopes and parameters", async () => {
  const answer = await fetch(`${server.url}${apiPrefix}/openapi.json`);
  const { paths } = (await answer.json()) as { paths: Record<string, Record<string, Described>> };
  const served = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security, parameters }]) => ({
      operation: `${method.toUpperCase()} ${path}`,
      scope: security[0]?.token?.[0] ?? "open",
      query: parameters.flatMap((one) => (one.in === "query" ? [one.name] : [])).sort(),
    })),
  );
  const documented = section(api, "Operations").rows.map(([method, path = "", scope, what = ""]) => ({
    operation: `${method} ${absolute(unquoted(path))}`,
    scope,
    query: queryOf(what),
  }));
  expect(documented.sort(byOperation)).toEqual(served.sort(byOperation));
});

it("every metric that is served is in docs/reference/http-api.md", async () => {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const names = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
  const documented = section(api, "Metrics").rows.map(([name = "", type]) => `${unquoted(name).replace(/\{.*\}/, "")} ${type}`);
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !documented.includes(name))).toEqual([]);
});

it("docs/guides/isolation.md names exactly the metrics that a worker serves", () => {
  const served = [
    ...workerMetrics(() => [])
      .registry.text()
      .matchAll(/^# TYPE (\S+) \S+$/gm),
  ].map(([, name = ""]) => name);
  const { rows } = section(readDocument("docs/guides/isolation.md"), "Metrics and health");
  const named = rows.flatMap(([names = ""]) => [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
  expect(named.sort()).toEqual(served.sort());
});

it("the limits of requests in docs/reference/limits.md are the code's", () => {
  const { rows } = section(readDocument("docs/reference/limits.md"), "Requests");
  const documented = Object.fromEntries(rows.map(([name = "", value = ""]) => [unquoted(name), Number(value.replaceAll(",", ""))]));
  expect(documented).toEqual(httpLimits);
});

function absolute(path: string): string {
  return ["/", "/health", "/livez", "/readyz", "/metrics"].includes(path) ? path : apiPrefix + path;
}

/** The parameters that a row names: single words in code marks. */
function queryOf(what: string): string[] {
  return [...what.matchAll(/`([a-zA-Z]+)(?:=\w+)?`/g)].map(([, name = ""]) => name).sort();
}

function byOperation(a: { operation: string }, b: { operation: string }): number {
  return a.operation < b.operation ? -1 : 1;
}
