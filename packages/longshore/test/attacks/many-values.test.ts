// The attacker sends a few megabytes that become millions of objects: lists of empty lists, as a body or in a gRPC message. Building these
// would block all other callers for seconds. The attacker holds no token, a worker token or an operator token. The server must count the
// values and refuse before it builds them.

import { expect, it, onTestFinished, vi } from "vitest";
import type { Json } from "../../src/core/json/json.ts";
import { ExactNumber, parseExact, writeExact } from "../../src/core/json/json-exact.ts";
import { JsonScan } from "../../src/core/json/json-scan.ts";
import { type GrpcChannel, openChannel } from "../../src/net/grpc/client.ts";
import { httpLimits } from "../../src/net/listener/limits.ts";
import { BlobService, FlowsService, OrchestratorService } from "../../src/protocols/stepflow/wire/services.ts";
import { serve } from "../../src/server/server.ts";
import { call } from "../support/http.ts";

const operator = "operator:operator-0123456789";
const headers = { authorization: "Bearer operator-0123456789", "content-type": "application/json" };

/** Above the limit, and small in bytes. */
const lists = `[${"[],".repeat(httpLimits.definitionValues / 2)}[]]`;

async function started() {
  const server = await serve({ ephemeral: true, port: 0, tokens: [operator] });
  onTestFinished(() => server.close(0));
  return server.url as string;
}

it.each([
  ["a flow of Stepflow", "/api/v1/flows", `{"flow":{"steps":[],"output":${lists}}}`],
  ["inputs of a run of Stepflow", "/api/v1/runs", `{"flowId":"x","input":${lists}}`],
  ["a blob as JSON", "/api/v1/blobs", `{"data":${lists}}`],
  ["a run of ours", "/api/longshore/v1/runs", `{"workflow":"w","input":${lists}}`],
  ["a run of Conductor", "/api/workflow/w", `{"x":${lists}}`],
  ["a result of Conductor", "/api/tasks", `{"taskId":"t","workflowInstanceId":"w","outputData":{"x":${lists}}}`],
  ["a graph of FlowKit", "/flowkit/v1/tasks", `{"graph":{"nodes":${lists}}}`],
])("%s with too many values is refused by name", async (_what, path, body) => {
  const { status, text } = await call(`${await started()}${path}`, { method: "POST", headers, body });
  expect(status).toBe(413);
  expect(text).toContain(`more than ${path.endsWith("/flows") ? httpLimits.definitionValues : httpLimits.payloadValues} JSON values`);
});

it("a workflow-graph workflow with too many values is refused in the format of that protocol", async () => {
  const body = `{"name":"w","jobs":${lists}}`;
  const { status, text } = await call(`${await started()}/api/workflows`, { method: "POST", headers, body });
  expect([status, text]).toEqual([413, "Failed to buffer the request body: length limit exceeded"]);
});

it("a route without a payload accepts fewer values", async () => {
  const url = await started();
  const body = `[${"1,".repeat(httpLimits.bodyValues)}1]`;
  const answer = await call(`${url}/api/workflow/bulk/search`, { method: "POST", headers, body });
  expect([answer.status, answer.text]).toEqual([413, expect.stringContaining(`more than ${httpLimits.bodyValues} JSON values`)]);
});

it("a gRPC message with too many fields is refused with the field's name", async () => {
  const channel = openChannel(await started(), { metadata: { authorization: "Bearer operator-0123456789" } });
  onTestFinished(() => channel.close());
  const data = Array.from({ length: httpLimits.definitionValues }, () => []) as Json[];
  const calls: ((to: GrpcChannel) => Promise<unknown>)[] = [
    (to) => to.unary(FlowsService.StoreFlow, { flow: { output: data } }),
    (to) => to.unary(BlobService.PutBlob, { jsonData: data }),
    (to) => to.unary(OrchestratorService.CompleteTask, { taskId: "t", response: { output: data } }),
  ];
  for (const send of calls) {
    await expect(send(channel)).rejects.toMatchObject({ code: 8, message: expect.stringMatching(/more than \d+ fields, the limit/) });
  }
});

it("a definition with the maximum number of values is checked in one walk, and causes no failure of the server", async () => {
  const x = `[${"1,".repeat(httpLimits.definitionValues - 100)}1]`;
  const task = `{"name":"t","taskReferenceName":"t","type":"SIMPLE","inputParameters":{"x":${x}}}`;
  const body = `{"name":"d","version":1,"schemaVersion":2,"ownerEmail":"a@b.c","timeoutSeconds":0,"tasks":[${task}]}`;
  expect((await call(`${await started()}/api/metadata/workflow/validate`, { method: "POST", headers, body })).status).toBe(200);
});

it("names of a very wide object count several times, but only in this object", () => {
  const object = (names: number) => `{${Array.from({ length: names }, (_, at) => `"${at}":1`).join(",")}}`;
  const valuesOf = (text: string) => {
    const scan = new JsonScan();
    scan.push(Buffer.from(text));
    return scan.values;
  };
  expect(valuesOf(object(1_000))).toBe(2 + 1_000 + 999);
  expect(valuesOf(object(1_100))).toBe(2 + 1_000 + 4 * 100 + 1_099);
  // Two equal objects count twice as much, because each object is counted from its first name.
  expect(valuesOf(`[${object(1_100)},${object(1_100)}]`)).toBe(2 * valuesOf(object(1_100)) + 1);
});

it("one number of megabytes is refused because of its digits", async () => {
  const body = `{"x":1${"7".repeat(2 * httpLimits.payloadValues)}}`;
  const { status, text } = await call(`${await started()}/api/workflow/w`, { method: "POST", headers, body });
  expect([status, text]).toEqual([413, expect.stringContaining(`more than ${httpLimits.payloadValues} JSON values`)]);
});

it("digits of a long number are counted for pieces of any size, but not digits of a usual number", () => {
  const text = Buffer.from(`[${"1".repeat(32)},${"2".repeat(40)},"${"3".repeat(40)}",0.${"4".repeat(32)}]`);
  for (let size = 1; size <= text.length; size++) {
    const scan = new JsonScan();
    for (let at = 0; at < text.length; at += size) scan.push(text.subarray(at, at + size));
    expect(scan.values).toBe(5 + 8);
  }
});

it("numbers that no double can hold are found in one pass, and written in one pass", () => {
  const text = `[${Array.from({ length: 1_000 }, (_, at) => `${at + 1}12345678901234567890`).join(",")}]`;
  const value = parseExact(text);
  const written = vi.spyOn(ExactNumber.prototype, "toJSON");
  onTestFinished(() => written.mockRestore());
  expect(writeExact(value)).toBe(text);
  expect(written).toHaveBeenCalledTimes(1_000);
});

it("values are counted without building one, for pieces of any size", () => {
  const text = Buffer.from('{"a,[{:\\"":[1,{"b":null},"\\\\"],"ü":[[],[]]}');
  for (let size = 1; size <= text.length; size++) {
    const scan = new JsonScan();
    for (let at = 0; at < text.length; at += size) scan.push(text.subarray(at, at + size));
    expect(scan.values).toBe(14);
  }
});
