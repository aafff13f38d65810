// Integers that no double can hold go from a Python client through two steps on a Python worker and back. Python's integers have no limit, so
// both ends can compare each digit of what they receive with what was sent.

import { fileURLToPath } from "node:url";
import { graph, task } from "longshore";
import { expect, it, onTestFinished } from "vitest";
import { startOurServer } from "../src/longshore.ts";
import { openStage, type Stage } from "../src/stage.ts";

const program = fileURLToPath(new URL("programs/numbers.py", import.meta.url));

const echo = task("echo", (given: object) => given);
const { source } = graph("numbers", (g, input) => g.step(echo, g.step(echo, input, { id: "first" })));

const python = (stage: Stage, role: "client" | "worker", protocol: string, url: string) =>
  stage.start("python3", [program, role, protocol], {
    name: `${protocol} ${role}`,
    env: { SERVER_URL: url, SOURCE: JSON.stringify(source) },
  });

it.each(["conductor", "workflow_graph"])("integers keep all their digits on %s", async (protocol) => {
  const stage = openStage({ onTestFinished });
  const { url } = await startOurServer(stage);
  await python(stage, "worker", protocol, url).printed(/ready/);
  await python(stage, "client", protocol, url).printed(/^exact$/m);
});

it("integers keep all their digits on stepflow, where the worker is called over HTTP", async (context) => {
  const stage = openStage(context);
  const [, port] = await python(stage, "worker", "stepflow", "").printed(/ready (\d+)/);
  const plugins = { p: { type: "stepflow", url: `http://127.0.0.1:${port}/` } };
  const { url } = await startOurServer(stage, { stepflow: { plugins, routes: { "/": [{ plugin: "p" }] } } });
  const client = python(stage, "client", "stepflow", url);
  await client.printed(/^exact$/m);
  expect(await client.ended).toBe("code 0");
});
