// Compares every query of ops/grafana.json with the /metrics of a server that has used every function: the metrics and labels in the queries
// must exist.

import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { task } from "../../../src/core/task.ts";
import { graph } from "../../../src/graph.ts";
import type { Ref } from "../../../src/reference.ts";
import { serve } from "../../../src/server/index.ts";
import { work } from "../../../src/work.ts";

interface Target {
  readonly expr: string;
}

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly Target[] }[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string; readonly query: string }[] };
}

const dashboard = JSON.parse(readFileSync(new URL("../../../../../ops/grafana.json", import.meta.url), "utf8")) as Dashboard;

/** Prometheus adds them to every series that it reads. */
const ofPrometheus = ["job", "instance"];
/** Keywords of PromQL that are not metrics. */
const words = new Set("sum min max by rate increase topk histogram_quantile label_values le".split(" "));

/** The labels of each series name, such as `x_bucket`. */
let served: Map<string, Set<string>>;

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "longshore-test-"));
  const server = await serve({ data: folder, port: 0, logger: { level: "silent" } });
  try {
    served = seriesOf(await metricsAfterWork(server));
  } finally {
    await server.close();
    rmSync(folder, { recursive: true });
  }
});

async function metricsAfterWork(server: Awaited<ReturnType<typeof serve>>): Promise<string> {
  const pack = task("pack", async (order: string) => order);
  const worker = await work({ tasks: [pack], on: server });
  const { id } = await server.start(
    graph("shipping", (g, order: Ref<string>) => g.step(pack, order)),
    "one",
  );
  await server.result(id);
  for (const path of ["/health", "/nowhere"]) await fetch(`${server.url}${path}`);
  await callOverGrpc(server.url as string);
  // A waiting task, so that its queue has an oldest task.
  const unserved = task("unserved", async (order: string) => order);
  await server.start(
    graph("later", (g, order: Ref<string>) => g.step(unserved, order)),
    "two",
  );
  const text = await (await fetch(`${server.url}/metrics`)).text();
  await worker.stop();
  return text;
}

/** A call of a method that does not exist is also counted. */
async function callOverGrpc(url: string): Promise<void> {
  const session = connect(url);
  const stream = session.request({ ":method": "POST", ":path": "/none.None/None", "content-type": "application/grpc", te: "trailers" });
  stream.end().resume();
  await once(stream, "close");
  session.close();
}

function seriesOf(text: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const [, name = "", labels = ""] of text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(name) ?? new Set<string>();
    for (const [, label = ""] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) known.add(label);
    found.set(name, known);
  }
  return found;
}

/** The mistakes of a query: metrics that are not served, and labels that none of its metrics has. */
function mistakesOf(query: string): string[] {
  const plain = query.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\[[^\]]*\]/g, "");
  const selected = [...plain.matchAll(/\{([^}]*)\}/g)].flatMap(([, text = ""]) => [...text.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)]);
  const grouped = [...plain.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, text = ""]) => [...text.matchAll(/\w+/g)]);
  const bare = plain.replace(/\{[^}]*\}/g, "").replace(/\bby \([^)]*\)/g, "");
  const names = [...bare.matchAll(/\b[a-z_]\w*\b/g)].map(([name]) => name).filter((name) => !words.has(name));
  const metrics = names.filter((name) => !ofPrometheus.includes(name));
  const labels = [...selected.map(([, label = ""]) => label), ...grouped.map(([label]) => label)];
  const known = new Set([...ofPrometheus, ...metrics.flatMap((name) => [...(served.get(name) ?? [])])]);
  return [
    ...(metrics.length === 0 ? ["it names no metric"] : []),
    ...metrics.filter((name) => !served.has(name)).map((name) => `/metrics has no ${name}`),
    ...labels.filter((label) => !known.has(label)).map((label) => `no metric of it has the label ${label}`),
  ];
}

it("every query of the dashboard names metrics and labels that a server has", () => {
  const targets = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
  expect(targets.length).toBeGreaterThan(25);
  const mistakes = targets.flatMap(({ title, expr }) => mistakesOf(expr).map((mistake) => ({ title, mistake })));
  expect(mistakes).toEqual([]);
});

it("the variables of the dashboard are read from a metric that every server has, and each is defined", () => {
  const { list } = dashboard.templating;
  for (const { query } of list.filter(({ type }) => type === "query")) expect(mistakesOf(query)).toEqual([]);
  const used = new Set([...JSON.stringify(dashboard).matchAll(/\$\{?(\w+)/g)].map(([, name = ""]) => name));
  const defined = new Set([...list.map(({ name }) => name), "__rate_interval", "__all"]);
  expect([...used].filter((name) => !defined.has(name))).toEqual([]);
});

it("a query with an unknown metric or label is reported", () => {
  expect(mistakesOf("rate(longshore_none_total[5m])")).toEqual(["/metrics has no longshore_none_total"]);
  expect(mistakesOf('sum by (colour) (longshore_workers{status="idle"})')).toEqual(["no metric of it has the label colour"]);
  expect(mistakesOf('sum(longshore_workers{colour="red"})')).toEqual(["no metric of it has the label colour"]);
  expect(mistakesOf("histogram_quantile(0.5, sum by (le) (rate(longshore_runs_open_bucket[5m])))")).toEqual([
    "/metrics has no longshore_runs_open_bucket",
    "no metric of it has the label le",
  ]);
});
