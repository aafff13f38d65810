// What a Conductor server performs by itself: a long loop, a large dynamic fork, expressions and HTTP calls.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type ConductorClient, openConductorClient } from "./conductor-client.ts";
import { answerApart, fineCpuMicroseconds } from "./processes.ts";

export interface ShapesRequest {
  readonly url: string;
  readonly serverPid: number;
  /** Iterations of the loop, and tasks of the fork. */
  readonly size: number;
  /** Runs of one expression, and of one call. */
  readonly runs: number;
}

export interface Shape {
  readonly perSecond: number;
  /** CPU of the server for one iteration, task or run. */
  readonly serverCpu: number;
}

export interface ShapesAnswer {
  readonly loop: Shape;
  readonly fork: Shape;
  readonly inline: Shape;
  readonly http: Shape;
  /** Runs that did not succeed. */
  readonly lost: number;
}

/** Callers that start a run and wait for its end. */
const CALLERS = 32;
/** Often enough for runs of some milliseconds, and rarely enough to cost nothing beside a run of seconds. */
const LOOK_MS = { short: 5, long: 100 } as const;
const WARM_UP = { size: 20, times: 3, runs: 64 } as const;

const inline = (ref: string) => ({
  ...{ name: ref, taskReferenceName: ref, type: "INLINE" },
  inputParameters: { evaluatorType: "graaljs", expression: "(function () { return $.n + 1; })();", n: 1 },
});

async function define(client: ConductorClient, target: string): Promise<void> {
  const workflow = (name: string, tasks: object[]) =>
    client.post("/metadata/workflow?overwrite=true", { name, version: 1, schemaVersion: 2, tasks, ownerEmail: "bench@example.com" });
  const loop = {
    ...{ name: "loop", taskReferenceName: "loop", type: "DO_WHILE", inputParameters: { n: "${workflow.input.n}" } },
    ...{ loopCondition: "if ($.loop['iteration'] < $.n) { true; } else { false; }", loopOver: [inline("body")] },
  };
  const fork = {
    ...{ name: "fork", taskReferenceName: "fork", type: "FORK_JOIN_DYNAMIC" },
    inputParameters: { tasks: "${workflow.input.tasks}", inputs: "${workflow.input.inputs}" },
    ...{ dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" },
  };
  const request = { uri: `${target}/`, method: "GET", accept: "application/json" };
  await workflow("bench_loop", [loop]);
  await workflow("bench_dynamic_fork", [fork, { name: "join", taskReferenceName: "join", type: "JOIN", joinOn: [] }]);
  await workflow("bench_inline", [inline("one")]);
  await workflow("bench_http", [{ name: "call", taskReferenceName: "call", type: "HTTP", inputParameters: { http_request: request } }]);
}

function forkInput(size: number): object {
  const tasks = Array.from({ length: size }, (_, at) => inline(`t${at}`));
  return { tasks, inputs: Object.fromEntries(tasks.map(({ name }, n) => [name, { n }])) };
}

/** Starts a run and waits for its end. */
async function run(client: ConductorClient, name: string, input: object, lookMs: number): Promise<boolean> {
  const id = await client.post("/workflow", { name, version: 1, input });
  for (;;) {
    const { status } = await client.get<{ status: string }>(`/workflow/${id}?includeTasks=false`);
    if (status !== "RUNNING") return status === "COMPLETED";
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}

async function listening(): Promise<{ server: Server; url: string }> {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end('{"ok":true}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

await answerApart<ShapesRequest, ShapesAnswer>(async ({ url, serverPid, size, runs }) => {
  const { server, url: target } = await listening();
  const client = await openConductorClient(url, CALLERS);
  await define(client, target);
  let lost = 0;
  const one = async (name: string, input: object) => {
    if (!(await run(client, name, input, LOOK_MS.long))) lost++;
  };
  const many = async (name: string, count: number) => {
    let started = 0;
    const caller = async () => {
      while (started++ < count) if (!(await run(client, name, {}, LOOK_MS.short))) lost++;
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
  };
  const measured = async (count: number, work: () => Promise<void>): Promise<Shape> => {
    const before = { at: performance.now(), cpu: fineCpuMicroseconds(serverPid) };
    await work();
    const seconds = (performance.now() - before.at) / 1000;
    return { perSecond: count / seconds, serverCpu: (fineCpuMicroseconds(serverPid) - before.cpu) / count };
  };
  for (let time = 0; time < WARM_UP.times; time++) {
    await one("bench_loop", { n: WARM_UP.size });
    await one("bench_dynamic_fork", forkInput(WARM_UP.size));
  }
  for (const name of ["bench_inline", "bench_http"]) await many(name, WARM_UP.runs);
  const answer = {
    loop: await measured(size, () => one("bench_loop", { n: size })),
    fork: await measured(size, () => one("bench_dynamic_fork", forkInput(size))),
    inline: await measured(runs, () => many("bench_inline", runs)),
    http: await measured(runs, () => many("bench_http", runs)),
  };
  client.close();
  server.close();
  server.closeAllConnections();
  return { ...answer, lost };
});
