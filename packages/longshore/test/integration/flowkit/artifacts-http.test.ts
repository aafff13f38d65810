// The contract of artifacts over HTTP on one of our listeners, and the errors for requests that cannot be read.

import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { refuse } from "../../../src/net/http/problem.ts";
import { artifactRoutes } from "../../../src/protocols/flowkit/server/artifacts/routes.ts";
import { taskRoutes } from "../../../src/protocols/flowkit/server/tasks-routes.ts";
import type { Attempt } from "../../../src/protocols/flowkit/wire/artifacts/artifacts.ts";
import { httpArtifacts } from "../../../src/protocols/flowkit/worker/artifacts/http.ts";
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
    ["partials", { ...attempt, task_id: 7, batch_uids: [] }, "task_id", "task_id is 7, expected a text that is not empty."],
    [
      "partials",
      { ...attempt, attempt_epoch: -1, batch_uids: [] },
      "attempt_epoch",
      "attempt_epoch is -1, expected a whole number of at least 0.",
    ],
    ["partials", attempt, "batch_uids", "batch_uids is missing, expected a list."],
    ["partials", { ...attempt, batch_uids: [3] }, "batch_uids[0]", "batch_uids[0] is 3, expected a text that is not empty."],
    [
      "partials",
      { ...attempt, batch_uids: ["a"] },
      "The number of lines after the first",
      "The number of lines after the first is 0, expected 1, one for each of batch_uids.",
    ],
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

  it.each([
    ["[]", "The meta of batch_uids[1] is [], expected an object."],
    ['{"a":', "The meta of batch_uids[1] is not JSON: "],
    [`{"a":${"[".repeat(200)}${"]".repeat(200)}}`, "The meta of batch_uids[1] nests deeper than 100 levels."],
  ])("a meta that is %s is named, and nothing of the call is kept", async (meta, why) => {
    const { url, begin, store, close } = await open();
    const [made] = await begin(["up"]);
    const { taskId: task_id, nodeId: node_id, epoch: attempt_epoch, workerId: worker_id } = made as Attempt;
    const head = JSON.stringify({ task_id, node_id, attempt_epoch, worker_id, batch_uids: ["a", "b"] });
    const put = (second: string) => call(`${url}/flowkit/v1/artifacts/partials`, { method: "POST", body: `${head}\n{}\n${second}\n` });
    const refused = await put(meta);
    expect([refused.status, JSON.parse(refused.text).error.message]).toEqual([400, expect.stringContaining(why)]);
    expect(JSON.parse((await put('{ "a": 1 }')).text)).toEqual({ accepted: true });
    expect(await store.putPartials(made as Attempt, [{ uid: "c", meta: {} }])).toBe(true);
    await close();
  });

  it("are refused with the place where a body is not JSON", async () => {
    const { url, close } = await open();
    const answer = await call(`${url}/flowkit/v1/artifacts/complete`, { method: "POST", body: '{"task_id": "t",\n  oops}' });
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([400, { error: { code: "LONGSHORE_BAD_INPUT", line: 2, column: 3 } }]);
    await close();
  });

  it("are refused with the name of a source that the task does not have", async () => {
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
