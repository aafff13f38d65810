// The attacker reads Stepflow runs with megabytes in inputs, items or steps, or starts runs with such inputs and waits for their end. The
// size of a response must be limited before it is in memory, and lists must not read texts. A waiting request must not keep its body in
// memory.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it, vi } from "vitest";
import { GrpcCode } from "../../src/net/grpc/status.ts";
import { Submitter } from "../../src/protocols/stepflow/server/api/submit.ts";
import { RunsService } from "../../src/protocols/stepflow/wire/services.ts";
import { startStepflow } from "../support/stepflow-server.ts";
import { until } from "../support/until.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const schema = "https://stepflow.org/schemas/v1/flow.json";
/** Gives each item the whole value of a variable. */
const repeating = {
  schema,
  schemas: { type: "object", properties: { variables: { type: "object", properties: { v: {} } } } },
  steps: [],
  output: { $variable: "$.v" },
};
const held = { schema, steps: [{ id: "a", component: "/hold", input: { $input: "$" } }], output: { $step: "a" } };

it("results that are too long together are refused after few of them are read", async () => {
  const server = await startStepflow();
  const items = 14;
  const run = await server.submit(
    repeating,
    Array.from({ length: items }, () => 0),
    { variables: { v: "x".repeat(5_000_000) } },
  );
  await server.ended(run);
  const read = vi.spyOn(server.engine.reader, "run");
  const message = expect.stringContaining("which is the limit");
  expect(await server.call("GET", `/runs/${run}/items`)).toMatchObject({ status: 413, body: { error: { message } } });
  expect(read.mock.calls.length).toBeLessThanOrEqual(items);
  read.mockClear();
  const refused = server.channel.unary(RunsService.GetRunItems, { runId: run, resultOrder: 0 });
  await expect(refused).rejects.toMatchObject({ code: GrpcCode.RESOURCE_EXHAUSTED, message });
  expect(read.mock.calls.length).toBeLessThanOrEqual(4);
});

it("a list of runs reads none of their texts", async () => {
  const server = await startStepflow();
  const runs = [await server.submit(held, [{ x: "x".repeat(100_000) }]), await server.submit(held, [{}])];
  const read = vi.spyOn(server.engine.reader, "run");
  const { body } = await server.call("GET", "/runs");
  expect(body.runs.map((run: { runId: string }) => run.runId)).toEqual(runs.reverse());
  expect(read).not.toHaveBeenCalled();
});

it.each(["REST", "gRPC"])("a request over %s that waits for the end of its run does not keep its inputs in memory", async (face) => {
  const server = await startStepflow();
  const flowId = await server.store(held);
  const submit = vi.spyOn(Submitter.prototype, "submit");
  const requests: WeakRef<object>[] = [];
  submit.mockImplementation(function (this: Submitter, request) {
    requests.push(new WeakRef(request), new WeakRef(request.inputs), new WeakRef(request.inputs[0] as object));
    submit.mockRestore();
    return this.submit(request);
  });
  const answer =
    face === "REST"
      ? server.call("POST", "/runs", { flowId, input: [{ x: 1 }], wait: true }).then(({ body }) => body)
      : server.channel.unary(RunsService.CreateRun, { flowId, input: [{ x: 1 }], wait: true });
  const task = await server.claim("hold");
  await until(() => {
    collectGarbage();
    return requests.length === 3 && requests.every((each) => each.deref() === undefined);
  });
  await server.complete(task, { y: 2 });
  expect(await answer).toMatchObject({ results: [{ output: { y: 2 } }] });
});
