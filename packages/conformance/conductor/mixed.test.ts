// One run, two protocols: in a workflow written in code, a Conductor SDK does the first step, and the plain Python worker of workflow-graph
// does the second.
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { graph, task } from "longshore";
import { expect, it } from "vitest";
import { exchange } from "../src/exchange.ts";
import { startOurServer } from "../src/longshore.ts";
import { openStage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { plainPython } from "../workflow-graph/plain-workers.ts";
import { javascriptWorker } from "./workers.ts";

const API = "/api/longshore/v1";

it("a Conductor worker does the first step of a workflow in code, and a workflow-graph worker does the second", async (context) => {
  const stage = openStage(context);
  const { url } = await startOurServer(stage);
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const json = body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = await exchange(url, { method, path: `${API}${path}`, ...json });
    expect(answer.status, answer.body).toBeLessThan(300);
    return JSON.parse(answer.body) as T;
  };

  const greet = task("greet", ({ input }: { input: { name: string } }) => ({ text: input.name }));
  const stamp = task("stamp", (_nothing: null) => ({}));
  const { source } = graph<{ name: string }, unknown>("mixed", (g, input) => {
    const greeting = g.step(greet, { input });
    g.step(stamp, null, { after: [greeting] });
    return greeting;
  });
  await call("POST", "/definitions", { source });
  const { id } = await call<{ id: string }>("POST", "/runs", { workflow: "mixed", input: { name: "Ann" } });
  const steps = async (): Promise<Record<string, string>> => {
    const { items } = await call<{ items: { id: string; state: string }[] }>("GET", `/runs/${id}/steps`);
    return Object.fromEntries(items.map((step) => [step.id, step.state]));
  };

  // The plain worker runs every command with the shell, and it receives the step as a command. This is the program that the shell finds.
  const programs = stage.folder();
  const program = join(programs, "{handler:stamp,input:null}");
  const stamped = join(programs, "stamped");
  writeFileSync(program, `#!/bin/sh\necho by the plain worker >> ${stamped}\n`);
  chmodSync(program, 0o755);
  const plain = plainPython(stage, url, { PATH: `${programs}:${process.env.PATH}`, LABELS: "python,handler:stamp" });
  await javascriptWorker(stage, url);
  await plain.printed(/reported stamp/);

  const ended = await until("the end of the run", async () => {
    const run = await call<{ state: string; output: unknown }>("GET", `/runs/${id}`);
    return run.state === "running" ? undefined : run;
  });
  expect(ended).toMatchObject({ state: "succeeded", output: { text: "Hello, Ann!" } });
  expect(await steps()).toEqual({ greet: "done", stamp: "done" });
  expect(readFileSync(stamped, "utf8")).toBe("by the plain worker\n");
});
