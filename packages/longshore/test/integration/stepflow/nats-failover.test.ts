// A server that never returns, or returns late. Two servers never share a store, so another server can continue a run only with the data of
// the dead one. Its address does not matter for workers that get their tasks over NATS.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { task } from "../../../src/core/task.ts";
import { ExecutionStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { stepflowNats } from "../../../src/protocols/stepflow/worker/index.ts";
import { work } from "../../../src/work.ts";
import { temporaryFolder } from "../../support/cli.ts";
import { natsMissing, TestNats } from "../../support/nats.ts";
import { step } from "../../support/stepflow-flows.ts";
import { startStepflow } from "../../support/stepflow-process.ts";
import { deferred, untilElsewhere as until } from "../../support/until.ts";

const steps = [
  step("first", "/echo"),
  step("second", "/hold", "first"),
  step("beside", "/hold", "first"),
  step("third", "/echo", "second"),
];
const flow: JsonObject = { name: "in a row and side by side", steps, output: [{ $step: "third" }, { $step: "beside" }] };

async function start(nats: TestNats, data = join(temporaryFolder(), "data"), port = 0) {
  const config = join(temporaryFolder(), "stepflow-config.yml");
  const plugins = { w: { type: "nats", natsUrl: nats.url, stream: "W" } };
  writeFileSync(config, JSON.stringify({ plugins, routes: { "/": [{ plugin: "w" }] } }));
  return { data, ...(await startStepflow(["--data", data, "--port", String(port), "--stepflow-config", config])) };
}

/** Both steps that wait for the same release are running. */
const bothHeld = (calls: readonly string[], input: string) => calls.filter((call) => call === `hold ${input} 1`).length === 2;

/** A worker whose `hold` waits until the test releases it by its input, and the calls of its components in order. */
async function startPool(nats: TestNats) {
  const gates = new Map(["x", "one", "two"].map((input) => [input, deferred<void>()]));
  const calls: string[] = [];
  const echo = task("echo", (input: string) => {
    calls.push(`echo ${input}`);
    return input;
  });
  const hold = task("hold", async (input: string, { attempt }) => {
    calls.push(`hold ${input} ${attempt}`);
    await gates.get(input)?.promise;
    return input;
  });
  const worker = await work({
    tasks: [echo, hold],
    on: stepflowNats(nats.url, { stream: "W", env: {} }),
    signals: false,
    logger: () => {},
  });
  onTestFinished(() => worker.stop({ force: true }));
  return { calls, letGo: (input: string) => gates.get(input)?.resolve() };
}

it("[S9-27, S-QUEUE-10] a run continues at another server with the data of a dead one", async (context) => {
  if (natsMissing) return context.skip(`needs ${natsMissing}`);
  const nats = await TestNats.start();
  const first = await start(nats);
  const { letGo, calls } = await startPool(nats);
  const runId = await first.run(flow, "x");
  await until(() => bothHeld(calls, "x"));
  await first.kill();

  const second = await start(nats, first.data);
  expect(second.port).not.toBe(first.port);
  letGo("x");
  expect(await second.result(runId)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: ["x", "x"] });
  expect(calls.filter((call) => call.startsWith("echo"))).toEqual(["echo x", "echo x"]);
});

it("[S9-28, S-QUEUE-05] two servers that both died each continue alone after their restart", async (context) => {
  if (natsMissing) return context.skip(`needs ${natsMissing}`);
  const nats = await TestNats.start();
  const [one, two] = [await start(nats), await start(nats)];
  const { letGo, calls } = await startPool(nats);
  const ofOne = await one.run(flow, "one");
  const ofTwo = await two.run(flow, "two");
  await until(() => bothHeld(calls, "one") && bothHeld(calls, "two"));
  await Promise.all([one.kill(), two.kill()]);

  const back = await start(nats, one.data, one.port);
  letGo("one");
  expect(await back.result(ofOne)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: ["one", "one"] });
  const last = await start(nats, two.data, two.port);
  letGo("two");
  expect(await last.result(ofTwo)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: ["two", "two"] });
  expect(calls.filter((call) => call.startsWith("echo")).sort()).toEqual(["echo one", "echo one", "echo two", "echo two"]);
});
