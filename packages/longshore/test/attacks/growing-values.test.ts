// The attacker may start runs, or is a worker whose outputs another step collects. Each value that is sent is small, but templates make a
// large value of it. Sub-workflows that repeat their input double it with every step, and one step may read all outputs.

import { describe, expect, it } from "vitest";
import { startAdminServer } from "../support/admin.ts";
import { eventually } from "../support/workflow-graph.ts";

const json = { "content-type": "application/json" };
const refTo = (step?: string, ...path: string[]) => ({ $ref: { ...(step === undefined ? {} : { step }), path } });

type Server = Awaited<ReturnType<typeof startAdminServer>>;

async function define(server: Server, source: object): Promise<void> {
  expect((await server.api("POST", "/definitions", { source }, json)).status).toBe(201);
}

async function ended(server: Server, run: string) {
  let shown: { state: string; error: string | null } = { state: "running", error: null };
  await eventually(async () => {
    shown = (await server.api("GET", `/runs/${run}`)).body;
    return shown.state !== "running";
  });
  return shown;
}

describe("a workflow in code whose steps each repeat the one before", () => {
  it("fails when a value would become too large, and the server stores no larger value", async () => {
    const server = await startAdminServer();
    await define(server, { name: "twice", steps: [], output: [refTo(), refTo()] });
    const steps = Array.from({ length: 10 }, (_, at) => ({
      id: `s${at}`,
      workflow: "twice",
      input: at === 0 ? "x".repeat(100_000) : refTo(`s${at - 1}`),
    }));
    await define(server, { name: "grows", steps, output: null });
    const { body } = await server.api("POST", "/runs", { workflow: "grows" }, json);
    const { state, error } = await ended(server, body.id);
    expect(state).toBe("failed");
    expect(error).toContain("it would have more than 16777216 characters or 524288 values besides the largest value that it reads");
  });

  it("also fails when there are very many short values", async () => {
    const server = await startAdminServer();
    await define(server, { name: "tenfold", steps: [], output: Array.from({ length: 10 }, () => refTo()) });
    const steps = Array.from({ length: 7 }, (_, at) => ({ id: `s${at}`, workflow: "tenfold", input: at === 0 ? 1 : refTo(`s${at - 1}`) }));
    await define(server, { name: "grows", steps, output: null });
    const { body } = await server.api("POST", "/runs", { workflow: "grows" }, json);
    expect((await ended(server, body.id)).error).toContain("524288 values");
  });
});

describe("a step that collects the large outputs of many others", () => {
  const large = "x".repeat(2_000_000);
  const readCharsMax = 33_554_432;
  const count = Math.ceil(readCharsMax / large.length) + 2;

  it("fails before all of them are in memory, although it uses little of each", async () => {
    const server = await startAdminServer();
    const parts = Array.from({ length: count }, (_, at) => ({ id: `p${at}`, task: "part", input: null }));
    const gather = { id: "gather", task: "gather", input: parts.map(({ id }) => refTo(id, "small")) };
    await define(server, { name: "gathers", steps: [...parts, gather], output: null });
    const { body } = await server.api("POST", "/runs", { workflow: "gathers" }, json);
    for (let at = 0; at < count; at++) {
      const { lease } = await server.take({ labels: ["handler:part"] });
      const answer = await server.post(`/api/jobs/${lease.lease_id}/complete`, { output: { small: 1, large } });
      expect(answer.status).toBe(200);
    }
    const { state, error } = await ended(server, body.id);
    expect(state).toBe("failed");
    expect(error).toContain(`the steps that it reads have more than ${readCharsMax} characters together`);
  });
});
