// The attacker holds a read token, and a run has a repetitive text, such as padding, base64 or measurements. The search text is equally
// repetitive and differs only at its end. A search that compares all of it at every position would block the event loop for minutes.

import { expect, it } from "vitest";
import { startServer } from "../support/cli.ts";
import { conversation } from "../support/workflow-graph.ts";

const operator = { authorization: "Bearer operator-token-0001", "content-type": "application/json" };
const reader = { authorization: "Bearer reader-token-000001" };

it("runs and tasks are searched for a long text in one pass", async () => {
  const server = await startServer(["--ephemeral", "--token", "operator:operator-token-0001", "--token", "read:reader-token-000001"]);
  const { send } = conversation(server.url);
  const task = { name: "t", taskReferenceName: "t", type: "SIMPLE", inputParameters: { x: "${workflow.input.x}" } };
  const definition = { name: "padded", version: 1, ownerEmail: "a@example.com", schemaVersion: 2, tasks: [task] };
  const post = async (path: string, body: object) => {
    const answer = await send("POST", path, { headers: operator, body: JSON.stringify(body) });
    expect(answer.status, answer.text).toBe(200);
  };
  await post("/api/metadata/workflow", definition);
  await post("/api/workflow/padded", { x: "a".repeat(9_000_000) });
  for (const wanted of [`${"a".repeat(7_000)}b`, `ab${"a".repeat(7_000)}`]) {
    for (const what of ["workflow", "tasks"]) {
      const none = await send("GET", `/api/${what}/search?freeText=${wanted}&size=0`, { headers: reader });
      expect(JSON.parse(none.text), what).toMatchObject({ totalHits: 0 });
    }
  }
  for (const what of ["workflow", "tasks"]) {
    const found = await send("GET", `/api/${what}/search?freeText=${"A".repeat(7_000)}&size=0`, { headers: reader });
    expect(JSON.parse(found.text), what).toMatchObject({ totalHits: 1 });
  }
});
