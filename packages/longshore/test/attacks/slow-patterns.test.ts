// The attacker may define flows, or holds only a read token. A regular expression that backtracks blocks the event loop permanently: no
// request gets a response, and SIGTERM has no effect. The server runs in a separate process, so that the test can end it.

import { describe, expect, it } from "vitest";
import { startServer } from "../support/cli.ts";
import { conversation } from "../support/workflow-graph.ts";

async function openServer(...flags: string[]) {
  const server = await startServer(["--ephemeral", ...flags]);
  return { server, ...conversation(server.url) };
}

describe("a pattern in the schema of a flow's variables", () => {
  const flow = (pattern: string) => ({
    schema: "https://stepflow.org/schemas/v1/flow.json",
    name: "slow",
    schemas: { type: "object", properties: { variables: { type: "object", properties: { v: { type: "string", pattern } } } } },
    steps: [],
    output: 1,
  });

  it("is matched without backtracking, and the server continues", async () => {
    const { server, post, get } = await openServer();
    const stored = await post("/api/v1/flows", { flow: flow("^(a+)+$") });
    const { flowId } = JSON.parse(stored.text) as { flowId: string };
    const run = await post("/api/v1/runs", { flowId, input: [{}], variables: { v: `${"a".repeat(50)}!` } });
    expect({ status: run.status, text: run.text }).toMatchObject({ status: 400, text: expect.stringContaining("does not fit its schema") });
    expect((await get("/health")).status).toBe(200);
    server.kill("SIGTERM");
    expect((await server.ended).code).toBe(0);
  });

  it("is refused with its field when it cannot be matched without backtracking", async () => {
    const { post } = await openServer();
    const stored = await post("/api/v1/flows", { flow: flow("^(?=.*a).+$") });
    const { diagnostics } = JSON.parse(stored.text) as { diagnostics: object };
    expect(JSON.stringify(diagnostics)).toContain("$.schemas.properties.variables.properties.v.pattern");
    expect(JSON.parse(stored.text)).toMatchObject({ stored: false });
  });
});

describe("the duration of a WAIT", () => {
  it("of many spaces is read in one pass, for a reader that only checks a definition", async () => {
    const { server, send } = await openServer("--token", "read:reader-token-000002");
    const wait = { name: "w", taskReferenceName: "w", type: "WAIT", inputParameters: { duration: `1d${" ".repeat(20_000)}x` } };
    const definition = { name: "slow", version: 1, ownerEmail: "a@example.com", schemaVersion: 2, tasks: [wait] };
    const headers = { authorization: "Bearer reader-token-000002", "content-type": "application/json" };
    const answer = await send("POST", "/api/metadata/workflow/validate", { headers, body: JSON.stringify(definition) });
    expect([200, 400]).toContain(answer.status);
    expect((await send("GET", "/health")).status).toBe(200);
    server.kill("SIGTERM");
    expect((await server.ended).code).toBe(0);
  });
});
