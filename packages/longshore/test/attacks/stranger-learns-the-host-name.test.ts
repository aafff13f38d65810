// The attacker has no token, or one that is refused something, and learns the name of the machine from refusals, which helps to find other
// targets.

import { expect, it, vi } from "vitest";
import { realGroups } from "../support/admin.ts";
import { startGraphServer } from "../support/workflow-graph.ts";

const name = "name-of-the-machine";
vi.mock("node:os", async (original) => ({ ...(await original<typeof import("node:os")>()), hostname: () => name }));

const secret = "operator-secret-0123456789";
const tokens = [`operator:${secret}`];

it("no refusal of a request without a token contains the name of the machine", async () => {
  const { send } = await startGraphServer({ tokens, logger: { level: "silent" } });
  const told: string[] = [];
  for (const { method, path } of (await realGroups()).flatMap(({ routes }) => routes)) {
    for (const url of [path.replace(/:[^/]+/g, "some-id"), `${path.replace(/:[^/]+/g, "some-id")}/nothing`]) {
      const { text } = await send(method, url, { headers: { "content-type": "application/json" }, body: "{" });
      if (text.includes(name)) told.push(`${method} ${url}`);
    }
  }
  expect(told).toEqual([]);
});

/** What is missing, and what cannot be read, in each protocol. */
const refusals = [
  ["GET", "/nothing"],
  ["GET", "/api/longshore/v1/runs/some-id"],
  ["POST", "/api/longshore/v1/runs"],
  ["POST", "/api/jobs/claim"],
  ["POST", "/api/jobs/some-id/complete"],
  ["GET", "/api/workflow/some-id"],
  ["POST", "/api/workflow"],
  ["POST", "/api/tasks"],
  ["GET", "/api/v1/runs/some-id"],
  ["POST", "/api/v1/flows"],
  ["GET", "/flowkit/v1/tasks/some-id"],
  ["POST", "/flowkit/v1/tasks"],
] as const;

it.each(refusals)("no refusal of %s %s with a token contains the name of the machine", async (method, path) => {
  const { send } = await startGraphServer({ tokens, logger: { level: "silent" } });
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const { status, text } = await send(method, path, { headers, ...(method === "POST" && { body: "{" }) });
  expect([400, 404]).toContain(status);
  expect(text).not.toContain(name);
});
