// The attacker may run flows, or holds only a read token. A small definition names a large value, or a value that is expensive to read, many
// times. The result on the server is many times as large as the request.

import { describe, expect, it } from "vitest";
import { startServer } from "../support/cli.ts";
import { conversation } from "../support/workflow-graph.ts";

const token = "reader-token-000002";

async function openServer(...flags: string[]) {
  const server = await startServer(["--ephemeral", ...flags]);
  return conversation(server.url);
}

describe("a flow that repeats its input many times", () => {
  const flowOf = (count: number) => ({
    schema: "https://stepflow.org/schemas/v1/flow.json",
    name: "grows",
    steps: [],
    output: Array.from({ length: count }, () => ({ $input: "$" })),
  });

  async function outcome(count: number, inputChars: number) {
    const { post } = await openServer();
    const { flowId } = JSON.parse((await post("/api/v1/flows", { flow: flowOf(count) })).text) as { flowId: string };
    const { text } = await post("/api/v1/runs", { flowId, input: ["x".repeat(inputChars)], wait: true });
    return { chars: text.length, refused: text.includes("its references together contain more than 16777216 characters") };
  }

  it("fails the run instead of writing the input each time", async () => {
    const { chars, refused } = await outcome(10, 2_000_000);
    expect(refused).toBe(true);
    expect(chars).toBeLessThan(10_000);
  });

  it("may pass on a large input unchanged", async () => {
    const { chars, refused } = await outcome(1, 2_000_000);
    expect(refused).toBe(false);
    expect(chars).toBeGreaterThan(2_000_000);
  });
});

describe("overrides for a step that a flow of many steps does not have", () => {
  it("are refused without repeating the name of each step", async () => {
    const { post } = await openServer();
    const steps = Array.from({ length: 2_000 }, (_, at) => ({ id: `step_${at}`, component: "/builtin/nothing" }));
    const stored = await post("/api/v1/flows", { flow: { name: "wide", steps, output: 1 } });
    const { flowId } = JSON.parse(stored.text) as { flowId: string };
    const { status, text } = await post("/api/v1/runs", { flowId, input: [1], overrides: { steps: { none: { value: {} } } } });
    expect(status).toBe(400);
    expect(text.length).toBeLessThan(5_000);
  });
});

describe("a definition of Conductor that a reader has checked", () => {
  async function validate(text: string) {
    const { send } = await openServer("--token", `read:${token}`);
    const task = { name: "t", taskReferenceName: "t", type: "SIMPLE", inputParameters: { a: text } };
    const definition = { name: "many", version: 1, ownerEmail: "a@example.com", schemaVersion: 2, tasks: [task] };
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return send("POST", "/api/metadata/workflow/validate", { headers, body: JSON.stringify(definition) });
  }

  it("is refused before its expressions are parsed when it has too many of them", async () => {
    const answer = await validate("${workflow.input.a}".repeat(20_001));
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("has more than 20000 expressions");
  });

  it("gets each fault once, without the whole text in each of them", async () => {
    const answer = await validate(Array.from({ length: 200 }, (_, at) => `${"x".repeat(2_000)}\${none${at}.output.a}`).join(""));
    expect(answer.status).toBe(400);
    expect(answer.text.length).toBeLessThan(1_000_000);
  });
});
