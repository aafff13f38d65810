// The attacker holds a token and sends values of many megabytes, which are stored with a run. Each is filled into templates and stored in
// one piece, while every other request waits: some hundred milliseconds for 16 MB. So every route and gRPC method that accepts a value has
// a limit. When the output of a Conductor worker is too large, its task fails with this reason.

import { request } from "node:http";
import { connect } from "node:http2";
import { expect, it, onTestFinished, vi } from "vitest";
import { actions } from "../../src/core/actions.ts";
import { payloadBytesMax, payloadRequestBytes } from "../../src/core/payload-size.ts";
import { GrpcCode } from "../../src/net/grpc/status.ts";
import type { Route } from "../../src/net/http/http.ts";
import { serve } from "../../src/server/server.ts";
import { realGroups, realMethods } from "../support/admin.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { answerOf, grpcHead } from "../support/grpc.ts";

async function started() {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  return server.url as string;
}

/** Announces a body of one byte above the limit for requests with a payload, and sends nothing of it. */
function announce(url: string, { method, path }: Route): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": String(payloadRequestBytes + 1) };
    const sent = request(`${url}${path.replace(/:[^/]+/g, "some-id")}`, { method, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
      sent.destroy();
    });
    sent.on("error", reject);
    sent.flushHeaders();
  });
}

it("only Conductor's reports and records of the bus may have larger bodies", async () => {
  const url = await started();
  const taken: string[] = [];
  let refused = 0;
  for (const route of (await realGroups()).flatMap(({ routes }) => routes)) {
    if (route.body !== "text") continue;
    if (route.takesLarge) taken.push(route.action);
    else if ((await announce(url, route)) === 413) refused++;
    else throw new Error(`${route.method} ${route.path} takes ${payloadRequestBytes + 1} bytes.`);
  }
  expect(refused).toBeGreaterThan(40);
  expect(new Set(taken)).toEqual(new Set(["task.report", "task.signal", "bus.publish"]));
});

it("no gRPC method accepts a larger message", async () => {
  const session = connect(await started());
  onTestFinished(() => session.destroy());
  const head = Buffer.alloc(5);
  head.writeUInt32BE(payloadRequestBytes + 1, 1);
  const carrying = (await realMethods()).filter(({ action }) => actions[action].carries !== undefined);
  expect(carrying.length).toBeGreaterThan(4);
  for (const { path } of carrying) {
    const stream = session.request(grpcHead(path));
    stream.end(head);
    expect((await answerOf(stream)).head["grpc-status"]).toBe(String(GrpcCode.RESOURCE_EXHAUSTED));
  }
});

it("an output that is too large ends its task, and one that is far too large is not stored", async () => {
  const c = await startConductor();
  const written = vi.spyOn(JSON, "stringify");
  onTestFinished(() => written.mockRestore());
  const longest = () => Math.max(...written.mock.results.map(({ value }) => (typeof value === "string" ? value.length : 0)));
  for (const chars of [payloadBytesMax, payloadBytesMax + 1_500_000]) {
    const id = await c.begin([{ name: "t", taskReferenceName: "t", type: "SIMPLE" }]);
    const { taskId, workflowInstanceId } = await c.take("t");
    const head = `{"taskId":"${taskId}","workflowInstanceId":"${workflowInstanceId}","status":"COMPLETED"`;
    await c.ask("POST", "/tasks", `${head},"outputData":{"x":"${"x".repeat(chars)}"}}`);
    await c.settle();
    expect(await c.record(id, "t")).toMatchObject({
      status: "FAILED_WITH_TERMINAL_ERROR",
      reasonForIncompletion: expect.stringContaining(`the permissible limit: ${payloadBytesMax} bytes`),
      outputData: {},
    });
  }
  expect(longest()).toBeLessThanOrEqual(payloadRequestBytes);
});
