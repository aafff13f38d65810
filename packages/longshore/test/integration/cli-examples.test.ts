// Every folder of examples/ is run as its README describes.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { longshore, startLongshore, startProgram } from "../support/cli.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const examples = join(root, "examples");

it("no example is missing", () => {
  const folders = readdirSync(examples, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map((entry) => entry.name).sort()).toEqual(["conductor", "embedded", "flowkit", "hello", "stepflow", "workflow"]);
});

it("hello: the worker runs both jobs of the definition file", async () => {
  const args = ["dev", "--port", "0", "--ephemeral", "--workflows", "examples/hello", "examples/hello/worker.ts"];
  const dev = startLongshore(args, { cwd: root });
  const [, url = ""] = await dev.printed(/serves on (http:\S+?),/);
  const { code, stdout } = await longshore(["run", "hello", "--follow", "--on", url]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/✓ greet-ada done .*greeting Ada[\s\S]*✓ greet-grace done .*greeting Grace/);
});

it("embedded: server and worker in one process", async () => {
  const { code, stdout, stderr } = await startProgram(process.execPath, ["--import", "tsx", "examples/embedded/main.ts"], { cwd: root })
    .ended;
  expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: "succeeded: 4 words\n" });
});

it("workflow: the tasks and the workflow of one file", async () => {
  const dev = startLongshore(["dev", "examples/workflow/order.ts", "--port", "0", "--ephemeral"], { cwd: root });
  const [, url = ""] = await dev.printed(/serves on (http:\S+?),/);
  await dev.printed(/Serving until/);
  const run = (...args: string[]) => longshore([...args, "--on", url], { cwd: root });
  const ordered = await run("run", "order", "--input", '{"item":"lantern","count":2}', "--follow", "--json");
  expect(JSON.parse(ordered.stdout)).toMatchObject({ state: "succeeded", output: { shipped: "from B7, 39 paid" } });
  const unknown = await run("run", "order", "--input", '{"item":"anchor","count":1}', "--follow");
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toContain("there is no anchor in stock");
});

it("conductor: tasks of a file for a Conductor workflow", async () => {
  const dev = startLongshore(["dev", "--port", "0", "--ephemeral"], { cwd: root });
  const [, url = ""] = await dev.printed(/serves on (http:\S+?),/);
  startLongshore(["work", "examples/conductor/worker.ts", "--conductor", url], { cwd: root });
  const post = (path: string, body: string) =>
    fetch(`${url}/api${path}`, { method: "POST", headers: { "content-type": "application/json" }, body });
  const defined = await post("/metadata/workflow", readFileSync(join(examples, "conductor/parcel.json"), "utf8"));
  expect(defined.status).toBe(200);
  const execute = async (input: object) => {
    const answer = await post("/workflow/execute/parcel/1?waitForSeconds=60", JSON.stringify({ input }));
    return (await answer.json()) as object;
  };
  expect(await execute({ item: "rope", count: 2 })).toMatchObject({ status: "COMPLETED", output: { label: "C1: 1700 g" } });
  expect(await execute({ item: "anchor", count: 1 })).toMatchObject({ status: "FAILED" });
});

it("stepflow: components of a file for a Stepflow flow", async () => {
  const dev = startLongshore(["dev", "--port", "0", "--ephemeral", "--stepflow-config", "examples/stepflow"], { cwd: root });
  const [, url = ""] = await dev.printed(/serves on (http:\S+?),/);
  startLongshore(["work", "examples/stepflow/worker.ts"], {
    cwd: root,
    env: { STEPFLOW_TASKS_URL: new URL(url).host, STEPFLOW_QUEUE_NAME: "node" },
  });
  const defined = await longshore(["define", "examples/stepflow/parcel.yml", "--on", url], { cwd: root });
  expect(defined).toMatchObject({ stdout: "parcel version 1\n", stderr: "" });
  const run = (input: object) => longshore(["run", "parcel", "--input", JSON.stringify(input), "--follow", "--json", "--on", url]);
  const express = await run({ item: "rope", count: 2, express: true });
  expect(JSON.parse(express.stdout)).toMatchObject({ state: "succeeded", output: { grams: 800, cents: 500 } });
  const plain = await run({ item: "lantern", count: 1, express: false });
  expect(JSON.parse(plain.stdout)).toMatchObject({ state: "succeeded", output: { grams: 850, cents: 350 } });
  const unknown = await run({ item: "anchor", count: 1, express: true });
  expect(JSON.parse(unknown.stdout)).toMatchObject({ state: "failed", error: expect.stringContaining("there is no anchor in stock") });
});

it("flowkit: roles of a file for a FlowKit graph", async () => {
  const dev = startLongshore(["dev", "--port", "0", "--ephemeral"], { cwd: root });
  const [, url = ""] = await dev.printed(/serves on (http:\S+?),/);
  startLongshore(["work", "examples/flowkit/worker.ts"], { cwd: root, env: { FLOWKIT_URL: url } });
  const tasks = `${url}/flowkit/v1/tasks`;
  const body = readFileSync(join(examples, "flowkit/graph.json"), "utf8");
  const submitted = await fetch(tasks, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { task_id } = (await submitted.json()) as { task_id: string };
  // It ends when the run ends.
  await (await fetch(`${url}/api/longshore/v1/runs/${task_id}/logs/stream`)).text();
  const shown = await (await fetch(`${tasks}/${task_id}`)).json();
  const stats = { items: 4, grams: 10_370 };
  expect(shown).toMatchObject({ status: "finished", result: { nodes: [{ node_id: "stock" }, { node_id: "weight", stats }, {}] } });
});
