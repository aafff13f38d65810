// The contract of artifacts over HTTP, on a listener of ours; and what a request that cannot be read is told.

import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { refuse } from "../../../src/problem.ts";
import { httpArtifacts } from "../../../src/protocol/flowkit/artifacts/http.ts";
import { artifactRoutes } from "../../../src/protocol/flowkit/artifacts/routes.ts";
import { taskRoutes } from "../../../src/protocol/flowkit/tasks-routes.ts";
import { type ArtifactWorld, artifactContract } from "../../contract/flowkit-artifacts.ts";
import { openOwnArtifacts } from "../../support/flowkit-artifacts.ts";
import { call, startServer } from "../../support/http.ts";

async function open(): Promise<ArtifactWorld & { url: string }> {
  const own = await openOwnArtifacts();
  const nothing = async () => null;
  const list = async () => ({ items: [], next: null });
  const tasks = { create: () => Promise.reject(), list, task: nothing, cancel: nothing, artifacts: nothing, deadLetters: nothing };
  const routes = [...artifactRoutes({ artifacts: own.store, clock: systemClock }).routes, ...taskRoutes(tasks)];
  const { url } = await startServer({ groups: [{ name: "flowkit", routes, refuse }], clock: systemClock });
  const store = httpArtifacts({ url });
  return {
    ...own,
    url,
    store,
    async close() {
      await store.close();
      await own.close();
    },
  };
}

artifactContract({ name: "artifacts over HTTP", open });

describe("requests for artifacts that cannot be read", () => {
  const attempt = { task_id: "t", node_id: "n", attempt_epoch: 1, worker_id: "w" };
  const cases: [path: string, body: unknown, field: string, detail: string][] = [
    ["partials", { ...attempt, task_id: 7, parts: [] }, "task_id", "task_id is 7, expected a text that is not empty."],
    [
      "partials",
      { ...attempt, attempt_epoch: -1, parts: [] },
      "attempt_epoch",
      "attempt_epoch is -1, expected a whole number of at least 0.",
    ],
    ["partials", attempt, "parts", "parts is missing, expected a list."],
    ["partials", { ...attempt, parts: [3] }, "parts[0]", "parts[0] is 3, expected an object."],
    ["partials", { ...attempt, parts: [{ batch_uid: "a", meta: [] }] }, "parts[0].meta", "parts[0].meta is [], expected an object."],
    [
      "read",
      { ...attempt, sources: [{ node_id: "" }] },
      "sources[0].node_id",
      'sources[0].node_id is "", expected a text that is not empty.',
    ],
    ["read", { ...attempt, sources: [], wait_ms: 1e9 }, "wait_ms", "wait_ms is 1000000000, expected a whole number from 0 to 30000."],
    [
      "finish",
      { ...attempt, parts: [{ batch_uid: "a" }] },
      "parts[0].from_node",
      "parts[0].from_node is missing, expected a text that is not empty.",
    ],
  ];

  it.each(cases)("POST %s %j names %s", async (path, body, field, detail) => {
    const { url, close } = await open();
    const answer = await call(`${url}/flowkit/v1/artifacts/${path}`, { method: "POST", body: JSON.stringify(body) });
    const error = { code: "LONGSHORE_BAD_INPUT", message: detail, field, expected: expect.any(String) };
    expect([answer.status, JSON.parse(answer.text)]).toEqual([400, { error }]);
    await close();
  });

  it("says where a body stops being JSON", async () => {
    const { url, close } = await open();
    const answer = await call(`${url}/flowkit/v1/artifacts/complete`, { method: "POST", body: '{"task_id": "t",\n  oops}' });
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([400, { error: { code: "LONGSHORE_BAD_INPUT", line: 2, column: 3 } }]);
    await close();
  });

  it("names a source that the task does not have", async () => {
    const { store, begin, close } = await open();
    const [sink] = await begin(["down"]);
    const options = { pollMs: 1, backoffMaxMs: 1, eofOnTaskDone: true, signal: new AbortController().signal };
    const reading = store
      .read(sink as never, ["nowhere"], options)
      [Symbol.asyncIterator]()
      .next();
    await expect(reading).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND", detail: { field: "from_nodes" } });
    await close();
  });
});
