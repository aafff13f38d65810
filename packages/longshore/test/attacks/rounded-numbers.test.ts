// Data can be lost without an attack. A database id or a time in nanoseconds is an integer above 2^53, and every program that reads it as a
// double silently passes on another number. Each test uses literal bytes of one protocol, from the client that starts a run through two
// steps to the client that reads the result. It checks the digits at every stage.

import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { JsonObject } from "../../src/core/json/json.ts";
import { parseExact } from "../../src/core/json/json-exact.ts";
import { memberTexts } from "../../src/core/json/json-text.ts";
import { atOnce } from "../../src/core/slices/slice-work.ts";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import { commandTopic, topicNamesDefault } from "../../src/protocols/flowkit/wire/shapes.ts";
import type { Ref } from "../../src/reference.ts";
import { serve } from "../../src/server/index.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";
import { openFlowkit } from "../support/flowkit-world.ts";
import { temporaryFolder } from "../support/parts.ts";
import { startGraphServer } from "../support/workflow-graph.ts";

const whole = "12345678901234567890";
const literals = [whole, "-9007199254740993", "1e400", "1e-400", "3.14159265358979323846"];
const payload = `{"whole":${whole},"rest":[${literals.slice(1).join(",")}]}`;

/** Fails unless every number is in the text with all its digits. */
function expectAll(text: string, where: string): void {
  expect(
    literals.filter((literal) => !text.includes(literal)),
    `${where}: ${text}`,
  ).toEqual([]);
}

it("our own API and workflow-graph: a run's input, a step's input and result, the output", async () => {
  const server = await startGraphServer();
  const pass = task("pass", (value: JsonObject) => value);
  const made = graph("numbers", (g, input: Ref<{ rest: number[]; whole: number }>) => {
    const first = g.step(pass, { all: input, one: input.whole });
    return g.step(pass, { first, again: input.rest }, { id: "second" });
  });
  await server.server.define(made);
  const started = await server.send("POST", "/api/longshore/v1/runs", { body: `{"workflow":"numbers","input":${payload}}` });
  const { id } = JSON.parse(started.text) as { id: string };
  expectAll(started.text, "the run that was started");
  for (const step of ["pass", "second"]) {
    const body = '{"worker_id":"python","labels":["handler:pass"],"lease_ttl_secs":60}';
    const headers = { "content-type": "application/json" };
    const claimed = await server.send("POST", "/api/jobs/claim", { headers, body });
    expectAll(claimed.text, `the claim of ${step}`);
    const { lease } = JSON.parse(claimed.text) as { lease: { lease_id: string } };
    const done = await server.send("POST", `/api/jobs/${lease.lease_id}/complete`, { headers, body: `{"outputs":{},"output":${payload}}` });
    expect(done.status).toBe(200);
  }
  expectAll((await server.get(`/api/longshore/v1/runs/${id}`)).text, "the run");
  expectAll((await server.get(`/api/longshore/v1/tasks/${id}.0`)).text, "a step");
});

it("Conductor: input, templates of values and texts, a worker's result, the output", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "first", retryCount: 0 }, { name: "second", retryCount: 0 });
  const templates = { all: "${first.output}", text: "id ${first.output.whole}", one: "${workflow.input.whole}", literal: "LITERAL" };
  const definition = JSON.stringify({
    name: "numbers",
    version: 1,
    tasks: [
      { ...simple("first"), inputParameters: { given: "${workflow.input}" } },
      { ...simple("second"), inputParameters: templates },
    ],
    outputParameters: { whole: "${second.output}" },
  }).replace('"LITERAL"', payload);
  expect((await c.send("POST", "/metadata/workflow", definition)).status).toBe(200);
  const id = await c.ask("POST", "/workflow", `{"name":"numbers","input":${payload},"correlationId":${whole}}`);
  for (const type of ["first", "second"]) {
    const polled = await c.ask("GET", `/tasks/poll/${type}?workerid=python`);
    expectAll(polled, `the poll of ${type}`);
    if (type === "second") expect(polled).toContain(`"id ${whole}"`);
    const { taskId } = JSON.parse(polled) as { taskId: string };
    await c.ask("POST", "/tasks", `{"workflowInstanceId":"${id}","taskId":"${taskId}","status":"COMPLETED","outputData":${payload}}`);
  }
  const run = await c.ask("GET", `/workflow/${id}?includeTasks=true`);
  expectAll(run, "the run");
  expectAll(atOnce(memberTexts(run)).get("output") as string, "its output");
  expect(atOnce(memberTexts(run)).get("correlationId")).toBe(`"${whole}"`);
  expect(run).not.toContain("12345678901234567000");
  expectAll(await c.ask("GET", "/metadata/workflow/numbers"), "the definition");
});

it("Stepflow over REST and JSON-RPC: input, expressions, a called worker, results and blobs", async () => {
  const received: string[] = [];
  const url = await jsonRpcWorker(received);
  const config = join(temporaryFolder(), "stepflow-config.yml");
  writeFileSync(config, `plugins: { p: { type: stepflow, url: "${url}" } }\nroutes: { "/": [ { plugin: p } ] }\n`);
  const server = await serve({ ephemeral: true, port: 0, stepflow: { config }, logger: { write: () => {} } });
  onTestFinished(() => server.close(0));
  const ask = async (method: string, path: string, body?: string) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}/api/v1${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
    expect(answer.status, path).toBeLessThan(300);
    return answer.text();
  };
  const steps = `[{"id":"a","component":"/echo","input":{"$input":"$"}},
    {"id":"b","component":"/echo","input":{"all":{"$step":"a"},"one":{"$step":"a","path":"whole"},"literal":{"$literal":${payload}}}}]`;
  const stored = await ask("POST", "/flows", `{"flow":{"name":"numbers","steps":${steps},"output":{"$step":"b"}}}`);
  const { flowId } = JSON.parse(stored) as { flowId: string };
  expectAll(await ask("GET", `/flows/${flowId}`), "the flow");
  for (const input of [payload, `${payload},${payload}`]) {
    const started = await ask("POST", "/runs", `{"flowId":"${flowId}","input":[${input}],"wait":true}`);
    const { runId } = (JSON.parse(started) as { summary: { runId: string } }).summary;
    expectAll(await ask("GET", `/runs/${runId}/items`), "the results");
  }
  expect(received.length).toBe(6);
  for (const [at, text] of received.entries()) expectAll(text, `call ${at}`);
});

it("FlowKit: inputs of nodes, a worker's events, parts and results", async () => {
  const world = await openFlowkit();
  const commands: string[] = [];
  const topics = ["src", "sink"].map((type) => commandTopic(topicNamesDefault, type));
  await world.bus.ensure(topics);
  const spy = world.bus.subscribe({
    ...{ group: "spy", topics, from: "latest" },
    handle: async (records) => void commands.push(...records.map(({ value }) => Buffer.from(value).toString())),
  });
  onTestFinished(() => spy.close());
  await spy.ready;
  const inline = parseExact(payload) as JsonObject;
  const nodes = [
    { node_id: "a", type: "src", io: { input_inline: inline } },
    { node_id: "b", type: "sink", depends_on: ["a"], io: { input_inline: inline } },
  ];
  const worker = await world.worker("w", ["src", "sink"], { capacity: 2 });
  const run = await world.submit({ nodes, edges: [["a", "b"]] }, inline);
  for (const _node of nodes) {
    const command = await worker.accept();
    await worker.batch(command, "uid", parseExact(payload) as JsonObject);
    await worker.done(command, parseExact(payload) as JsonObject);
  }
  const ended = await world.ended(run);
  expect(ended.state).toBe("succeeded");
  expect(commands).toHaveLength(2);
  for (const command of commands) expectAll(command, "a command");
  expectAll(ended.input, "the parameters");
  for (const node of ["a", "b"]) {
    const done = await world.task(run, node);
    expectAll(done?.output ?? "", `the result of ${node}`);
    const { parts } = await world.engine.parts.read(done?.id as string, 0, 10);
    expectAll(parts.map(({ value }) => value).join(), `the parts of ${node}`);
  }
});

/** A worker of the HTTP transport that returns the unchanged text of its input. */
async function jsonRpcWorker(received: string[]): Promise<string> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const text = Buffer.concat(pieces).toString();
      const { method, id } = (text === "" ? {} : JSON.parse(text)) as { method?: string; id?: string };
      const result =
        method === "initialize"
          ? '{"server_protocol_version":1}'
          : method === "components/list"
            ? '{"components":[{"name":"/echo","component":"/echo"}]}'
            : `{"output":${inputIn(text, received)}}`;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id ?? null)},"result":${result}}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function inputIn(text: string, received: string[]): string {
  const params = atOnce(memberTexts(text)).get("params");
  const input = params === undefined ? undefined : atOnce(memberTexts(params)).get("input");
  if (input === undefined) return "null";
  received.push(input);
  return input;
}
