// The whole server for callers without rights: every real route of every protocol requires a token.

import { expect, it } from "vitest";
import { realGroups, realMethods } from "../../test/support/admin.ts";
import { walkMethodTable, walkRouteTable } from "../../test/support/route-table.ts";
import { startGraphServer } from "../../test/support/workflow-graph.ts";
import { actions } from "../core/actions.ts";

const secrets = { worker: "worker-secret-0123456789", operator: "operator-secret-0123456789", read: "read-secret-0123456789" };
const tokens = Object.entries(secrets).map(([scope, secret]) => `${scope}:${secret}:${scope}-token`);

it("every route except health responds with 401 without a token, and with 403 when the token allows too little", async () => {
  const groups = await realGroups();
  const { url, get } = await startGraphServer({ tokens, logger: { level: "silent" } });
  const { calls, findings } = await walkRouteTable(groups, url, secrets);
  expect(findings).toEqual([]);
  expect(groups.map(({ name }) => name)).toEqual(["workflow-graph", "conductor", "stepflow", "flowkit", "longshore"]);
  expect(calls).toBeGreaterThan(2 * 110);
  expect((await get("/health")).status).toBe(200);
});

it("every gRPC method responds with UNAUTHENTICATED without a token, and with PERMISSION_DENIED when the token allows too little", async () => {
  const methods = await realMethods();
  const { url } = await startGraphServer({ tokens, logger: { level: "silent" } });
  const { calls, findings } = await walkMethodTable(methods, url, secrets);
  expect(findings).toEqual([]);
  expect(calls).toBeGreaterThanOrEqual(2 * methods.filter(({ action }) => actions[action].who !== "anyone").length);
});

it("a token allows what its scope covers", async () => {
  const { send } = await startGraphServer({ tokens, sample: true, logger: { level: "silent" } });
  const as = (scope: keyof typeof secrets) => ({ authorization: `Bearer ${secrets[scope]}`, "content-type": "application/json" });
  const statusOf = async (method: string, path: string, scope: keyof typeof secrets, body?: string) =>
    (await send(method, path, { headers: as(scope), ...(body === undefined ? {} : { body }) })).status;
  const start = JSON.stringify({ workflow: "ci-1" });
  expect(await statusOf("POST", "/api/longshore/v1/runs", "operator", start)).toBe(201);
  expect(await statusOf("POST", "/api/longshore/v1/runs", "read", start)).toBe(403);
  expect(await statusOf("GET", "/api/longshore/v1/runs", "read")).toBe(200);
  expect(await statusOf("GET", "/metrics", "read")).toBe(200);
  expect(await statusOf("POST", "/api/jobs/claim", "worker", '{"worker_id":"w","labels":[],"lease_ttl_secs":30}')).toBe(200);
  expect(await statusOf("POST", "/api/workflows/ci-1/run", "worker")).toBe(403);
});

it("no token appears in the log, for any request", async () => {
  const lines: string[] = [];
  const { send } = await startGraphServer({ tokens, logger: { level: "debug", format: "json", write: (line) => lines.push(line) } });
  await send("GET", `/api/longshore/v1/runs/${secrets.operator}`, { headers: { authorization: `Bearer ${secrets.operator}` } });
  await send("GET", `/api/longshore/v1/runs?token=${secrets.read}`, { headers: { authorization: `Bearer ${secrets.read}` } });
  await send("GET", "/api/longshore/v1/runs", { headers: { authorization: "Bearer some-other-secret-0123456789" } });
  expect(lines.length).toBeGreaterThan(0);
  for (const secret of [...Object.values(secrets), "some-other-secret"]) expect(lines.join("\n")).not.toContain(secret);
});
