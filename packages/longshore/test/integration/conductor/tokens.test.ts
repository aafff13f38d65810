import { expect, it } from "vitest";
import { realGroups } from "../../support/admin.ts";
import { startConductor } from "../../support/conductor-rest.ts";
import { simple } from "../../support/conductor-world.ts";
import { call } from "../../support/http.ts";
import { walkRouteTable } from "../../support/route-table.ts";

const secrets = { worker: "worker-secret-0123456789", operator: "operator-secret-0123456789", read: "read-secret-0123456789" };
const tokens = Object.entries(secrets).map(([scope, secret]) => `${scope}:${secret}`);
const json = { "content-type": "application/json" };

it("exchanges key and secret for a token, which allows what its scope covers", async () => {
  const { url } = await startConductor({ tokens });
  const exchange = (keySecret: string) =>
    call(`${url}/api/token`, { method: "POST", headers: json, body: JSON.stringify({ keyId: "key", keySecret }) });
  const tokenOf = async (secret: string) => (JSON.parse((await exchange(secret)).text) as { token: string }).token;
  const worker = { "x-authorization": await tokenOf(secrets.worker) };
  const operator = { "x-authorization": await tokenOf(secrets.operator) };
  const poll = (headers: Record<string, string>) => call(`${url}/api/tasks/poll/batch/t?timeout=0`, { headers });
  expect((await poll(worker)).status).toBe(200);
  expect((await poll({})).status).toBe(401);
  const definition = JSON.stringify({ name: "w", tasks: [simple("t")] });
  const define = (headers: Record<string, string>) =>
    call(`${url}/api/metadata/workflow`, { method: "POST", headers: { ...json, ...headers }, body: definition });
  expect((await define(worker)).status).toBe(403);
  expect((await define(operator)).status).toBe(200);
});

it("refuses a wrong secret and an unknown token with an error that makes clients request a new token", async () => {
  const { url } = await startConductor({ tokens });
  const body = JSON.stringify({ keyId: "key", keySecret: "wrong" });
  const wrong = await call(`${url}/api/token`, { method: "POST", headers: json, body });
  expect([wrong.status, JSON.parse(wrong.text)]).toEqual([401, expect.objectContaining({ status: 401, retryable: false })]);
  const stale = await call(`${url}/api/tasks/poll/batch/t?timeout=0`, { headers: { "x-authorization": "stale" } });
  expect([stale.status, JSON.parse(stale.text)]).toEqual([401, expect.objectContaining({ status: 401, error: "INVALID_TOKEN" })]);
  expect(`${wrong.text}${stale.text}`).not.toContain("secret-0123456789");
});

it("has no token endpoint when none is needed", async () => {
  const c = await startConductor();
  const answer = await c.send("POST", "/token", { keyId: "key", keySecret: "any" });
  expect([answer.status, JSON.parse(answer.text).message]).toEqual([404, "No static resource api/token."]);
});

it("requires a token on every route except the open ones, sent as Conductor's clients send it", async () => {
  const { url } = await startConductor({ tokens });
  const groups = (await realGroups()).filter(({ name }) => name === "conductor");
  const { calls, findings } = await walkRouteTable(groups, url, secrets, (token) => ({ "x-authorization": token }));
  expect(findings).toEqual([]);
  expect(calls).toBeGreaterThan(2 * 75);
  for (const path of ["/api/health", "/api/version"]) expect((await call(`${url}${path}`)).status).toBe(200);
});
