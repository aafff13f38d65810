// The attacker holds a worker token, which may not read runs. Conductor has two ways to report on a waiting step that return the whole run.
// So a worker could once read every run whose id it knew, with inputs and outputs of all its tasks. It reported IN_PROGRESS, which changes
// nothing.

import { expect, it } from "vitest";
import { startGraphServer } from "../support/workflow-graph.ts";

const secrets = {
  worker: "worker-secret-0123456789",
  read: "read-secret-0123456789ab",
  "worker,read": "both-secret-0123456789ab",
  operator: "operator-secret-0123456789",
};

async function production() {
  const tokens = Object.entries(secrets).map(([scopes, secret]) => `${scopes}:${secret}:${scopes.replace(",", "-")}`);
  const { send } = await startGraphServer({ tokens, logger: { level: "silent" } });
  const as = async (who: keyof typeof secrets, method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${secrets[who]}`, "content-type": "application/json" };
    const { status, text } = await send(method, `/api${path}`, { headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status, text };
  };
  const tasks = [{ name: "approve", taskReferenceName: "approve", type: "HUMAN" }];
  await as("operator", "PUT", "/metadata/workflow", [{ name: "w", version: 1, tasks }]);
  const { text: run } = await as("operator", "POST", "/workflow", { name: "w", input: { salary: "a private number" } });
  return { as, run };
}

it.each(["approve/IN_PROGRESS/sync", "IN_PROGRESS/signal/sync?returnStrategy=TARGET_WORKFLOW"])(
  "a worker does not read a run by reporting on a step (%s)",
  async (way) => {
    const { as, run } = await production();
    const path = `/tasks/${run}/${way}`;
    const looted = await as("worker", "POST", path, {});
    expect(looted.status).toBe(403);
    expect(looted.text).not.toContain("private");
    expect((await as("read", "POST", path, {})).status).toBe(403);
    const allowed = await as("worker,read", "POST", path.replace("IN_PROGRESS", "COMPLETED"), {});
    expect(allowed.status).toBe(200);
    expect(allowed.text).toContain("a private number");
  },
);

it("a worker can still report on a step by its name, and learns only the id of its task", async () => {
  const { as, run } = await production();
  const told = await as("worker", "POST", `/tasks/${run}/approve/COMPLETED`, { by: "Ada" });
  expect(told.status).toBe(200);
  expect(told.text).not.toContain("private");
});
