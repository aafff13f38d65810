// The attacker sends bodies of the maximum size: one long string full of escapes, or a list of many small values. When such a body is read in
// one piece, all other callers wait. The server must read it in slices, with turns of the event loop between them, on every route that
// accepts JSON. The listener does this also for new routes.

import { expect, it, onTestFinished, vi } from "vitest";
import { sliceChars } from "../../src/core/json/json-slices.ts";
import { serve } from "../../src/server/server.ts";
import { call } from "../support/http.ts";

const headers = { "content-type": "application/json" };
/** Several slices, but within the smallest limit of these routes. */
const escaped = `"${"\\n".repeat(900_000)}"`;
const items = `[${`"${"x".repeat(20)}",`.repeat(60_000)}1]`;

/** The text around a sequence of members, and an escape that is not divided. */
const roomChars = 16;

async function started() {
  const server = await serve({ ephemeral: true, port: 0 });
  onTestFinished(() => server.close(0));
  return server.url as string;
}

function longestParsed() {
  const parse = vi.spyOn(JSON, "parse");
  onTestFinished(() => parse.mockRestore());
  return () => Math.max(...parse.mock.calls.map(([text]) => text.length));
}

const routes: [what: string, path: string, body: (payload: string) => string][] = [
  ["a run of ours", "/api/longshore/v1/runs", (x) => `{"workflow":"none","input":{"x":${x}}}`],
  ["a run of Conductor", "/api/workflow/none", (x) => `{"x":${x}}`],
  ["a result of Conductor", "/api/tasks", (x) => `{"taskId":"t","workflowInstanceId":"none","status":"COMPLETED","outputData":{"x":${x}}}`],
  ["a run of Stepflow", "/api/v1/runs", (x) => `{"flowId":"${"0".repeat(64)}","input":[{"x":${x}}]}`],
  ["a blob as JSON", "/api/v1/blobs", (x) => `{"other":${x}}`],
  ["a blob as JSON that is stored", "/api/v1/blobs", (x) => `{"data":${x}}`],
  ["a flow of Stepflow", "/api/v1/flows", (x) => `{"flow":{"name":"n","steps":[],"output":${x}}}`],
  ["a completion of workflow-graph", "/api/jobs/none/complete", (x) => `{"output":${x}}`],
  ["a part of FlowKit", "/flowkit/v1/artifacts/partials", (x) => `{"batch_uids":["u"]}\n{"x":${x}}\n`],
  ["a graph of FlowKit", "/flowkit/v1/tasks", (x) => `{"params":{"x":${x}}}`],
];

it.each(routes)("%s is read in slices", async (_what, path, body) => {
  const url = await started();
  for (const payload of [escaped, items]) {
    const longest = longestParsed();
    const { status } = await call(`${url}${path}`, { method: "POST", headers, body: body(payload) });
    // The requested object does not exist: the server has read the whole body and done nothing else.
    expect([400, 404, 409, 200]).toContain(status);
    expect(longest()).toBeLessThanOrEqual(sliceChars + roomChars);
  }
});

it.each(routes)(
  "%s with a mistake at its end is also read in slices, and is not read again to find the mistake",
  async (_what, path, body) => {
    const url = await started();
    const longest = longestParsed();
    const { status } = await call(`${url}${path}`, { method: "POST", headers, body: body(escaped).replace(/\}(\s*)$/, ",}$1") });
    expect(status).toBe(400);
    expect(longest()).toBeLessThanOrEqual(sliceChars + roomChars);
  },
);

it("a FlowKit graph that is too large to be sent to a node is refused", async () => {
  const body = `{"graph":{"nodes":[]},"params":{"x":"${"x".repeat(4 * 1_024 * 1_024)}"}}`;
  const { status, text } = await call(`${await started()}/flowkit/v1/tasks`, { method: "POST", headers, body });
  expect([status, text]).toEqual([413, expect.stringContaining("larger than 4194304 bytes")]);
});
