// A node that does not own the data reads runs, tasks, logs, blobs and definitions from PostgreSQL itself. Its responses must be the same as
// the owner's, and it must pass on requests whose response is not in the rows.

import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createLogger } from "../../src/core/logger.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import { createAuth } from "../../src/net/listener/auth.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";
import type { Ref } from "../../src/reference.ts";
import { openEngine } from "../../src/server/engine.ts";
import type { Server } from "../../src/server/index.ts";
import { openProtocols, prepareProtocols } from "../../src/server/protocols.ts";
import { tableOf } from "../../src/server/server-port.ts";
import { work } from "../../src/work.ts";
import { postgresMissing } from "../support/postgres.ts";
import { sharedPostgres } from "../support/postgres-servers.ts";

const double = task("double", async ({ n }: { n: number }, { log }) => {
  log(`doubling ${n}`);
  return { n: n * 2 };
});
const refuse = task(
  "refuse",
  async (): Promise<null> => {
    throw new Error("no");
  },
  { retry: { limit: 1 } },
);
const twice = graph("twice", (g, input: Ref<{ n: number }>) => g.step(double, g.step(double, input)));
const refused = graph("refused", (g) => g.step(refuse, null));
const unserved = task("unserved", async () => null);
const idle = graph("idle", (g) => g.step(unserved, null));

const conductorFlow = {
  name: "pair",
  version: 1,
  schemaVersion: 2,
  tasks: [
    { name: "wait", taskReferenceName: "pause", type: "WAIT", inputParameters: { duration: "0 seconds" } },
    { name: "set", taskReferenceName: "set", type: "SET_VARIABLE", inputParameters: { value: 5 } },
  ],
  outputParameters: { value: "$" + "{workflow.variables.value}" },
};
const flow = { name: "echo", output: { $input: "text" }, steps: [] };

/** The paths of all routes that a node may perform itself. */
async function storedRoutes(): Promise<string[]> {
  const logger = createLogger({ clock: systemClock, level: "silent", write: () => {} });
  const prepared = await prepareProtocols({}, logger);
  const engine = await openEngine({ directory: null, dialects: prepared.flatMap(({ dialects }) => dialects) });
  const protocols = await openProtocols(prepared, engine, logger, { isIdle: true });
  const { groups } = await tableOf({ engine, protocols: protocols.list, metrics: createMetrics(), auth: createAuth([]) });
  await protocols.close();
  await engine.close();
  return groups.flatMap(({ routes }) => routes.filter(({ stored }) => stored).map(({ path }) => path));
}

async function answerOf({ url }: Server, path: string) {
  const reply = await fetch(url + path);
  return { status: reply.status, type: reply.headers.get("content-type"), body: await reply.text() };
}

async function readsOf({ url }: Server): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^longshore_node_reads_total (\d+)$/m.exec(text)?.[1]);
}

async function post({ url }: Server, path: string, body: unknown): Promise<string> {
  const isText = typeof body === "string";
  const headers = { "content-type": isText ? "application/octet-stream" : "application/json" };
  const reply = await fetch(url + path, { method: "POST", headers, body: isText ? body : JSON.stringify(body) });
  const text = await reply.text();
  expect(reply.ok, `${path}: ${text}`).toBe(true);
  return text;
}

if (postgresMissing !== undefined) it("a node reads what the owner answers", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("reads of a node that does not own the data", () => {
    const { postgres, open } = sharedPostgres();

    const setup = async () => {
      const store = postgres().newUrl();
      const owner = await open(store);
      const node = await open(store);
      const worker = await work({ tasks: [double, refuse], on: workflowGraph(node.url as string) });
      onTestFinished(() => worker.stop());
      return { owner, node, schema: new URL(store).searchParams.get("schema") };
    };

    it("return the same as the owner, without a request to it when the rows have the response", async () => {
      const { owner, node } = await setup();
      const ended = (await node.start(twice, { n: 5 })).id;
      const failed = (await node.start(refused, null)).id;
      const waiting = (await node.start(idle, null)).id;
      expect(await node.signal(waiting, "unasked", { n: 1 }, { key: "k" })).toEqual({
        number: 1,
        name: "unasked",
        state: "kept",
        awaited: [],
      });
      await node.cancel(waiting);
      await node.result(ended);
      await node.result(failed);
      await post(node, "/api/metadata/workflow", conductorFlow);
      const pair = await post(node, "/api/workflow/pair", {});
      const { flowId } = JSON.parse(await post(node, "/api/v1/flows", { flow })) as { flowId: string };
      const { hash } = JSON.parse(await post(node, "/api/longshore/v1/blobs", "content")) as { hash: string };
      const echoed = JSON.parse(await post(node, "/api/v1/runs", { flowId, input: [{ text: hash }], wait: true })) as {
        summary: { runId: string };
      };
      const { blobId } = JSON.parse(await post(node, "/api/v1/blobs", { data: { a: 1 }, blobType: "data" })) as { blobId: string };
      await expect.poll(async () => (await fetch(`${owner.url}/api/workflow/${pair}/status`)).text()).toContain("COMPLETED");
      const { runId } = echoed.summary;
      const shown = JSON.parse((await answerOf(owner, `/api/workflow/${pair}`)).body) as { tasks: readonly { taskId: string }[] };
      const taskId = shown.tasks[0]?.taskId;
      const ours = "/api/longshore/v1";
      const paths: { readonly [route: string]: string } = {
        [`${ours}/runs`]: `${ours}/runs?limit=2`,
        [`${ours}/runs/:id`]: `${ours}/runs/${ended}`,
        [`${ours}/runs/:id/input`]: `${ours}/runs/${ended}/input`,
        [`${ours}/runs/:id/output`]: `${ours}/runs/${ended}/output?max=3`,
        [`${ours}/runs/:id/tasks`]: `${ours}/runs/${ended}/tasks`,
        [`${ours}/runs/:id/graph`]: `${ours}/runs/${ended}/graph`,
        [`${ours}/runs/:id/timeline`]: `${ours}/runs/${failed}/timeline`,
        [`${ours}/runs/:id/signals`]: `${ours}/runs/${waiting}/signals`,
        [`${ours}/runs/:id/logs`]: `${ours}/runs/${ended}/logs`,
        [`${ours}/runs/:id/blobs/:hash`]: `${ours}/runs/${runId}/blobs/${hash}`,
        [`${ours}/tasks`]: `${ours}/tasks`,
        [`${ours}/tasks/:id`]: `${ours}/tasks/${failed}.0`,
        [`${ours}/tasks/:id/attempts`]: `${ours}/tasks/${failed}.0/attempts?io=true`,
        [`${ours}/tasks/:id/input`]: `${ours}/tasks/${ended}.0/input`,
        [`${ours}/tasks/:id/output`]: `${ours}/tasks/${ended}.0/output`,
        [`${ours}/definitions`]: `${ours}/definitions`,
        [`${ours}/definitions/:name`]: `${ours}/definitions/twice`,
        [`${ours}/workflows/:name/versions`]: `${ours}/workflows/twice/versions`,
        [`${ours}/workflows/:name/versions/:range`]: `${ours}/workflows/twice/versions/1...1`,
        [`${ours}/blobs/:hash`]: `${ours}/blobs/${hash}`,
        [`${ours}/audit`]: `${ours}/audit`,
        [`${ours}/history/runs`]: `${ours}/history/runs`,
        [`${ours}/history/runs/:id`]: `${ours}/history/runs/${failed}`,
        [`${ours}/history/tasks`]: `${ours}/history/tasks`,
        [`${ours}/history/tasks/:id`]: `${ours}/history/tasks/${failed}.0`,
        "/api/workflow/:workflow": `/api/workflow/${pair}`,
        "/api/workflow/:workflow/status": `/api/workflow/${pair}/status?includeOutput=true`,
        "/api/workflow/:workflow/tasks": `/api/workflow/${pair}/tasks`,
        "/api/workflow/running/:name": "/api/workflow/running/pair",
        "/api/workflow/:name/correlated/:correlation": "/api/workflow/pair/correlated/none",
        "/api/workflow/search": "/api/workflow/search?query=workflowType='pair'",
        "/api/workflow/search-v2": "/api/workflow/search-v2?freeText=pair",
        "/api/workflow/search-by-tasks": "/api/workflow/search-by-tasks?query=workflowType='pair'",
        "/api/workflow/search-by-tasks-v2": "/api/workflow/search-by-tasks-v2?query=workflowType='pair'",
        "/api/tasks/:task": `/api/tasks/${taskId}`,
        "/api/tasks/:task/log": `/api/tasks/${taskId}/log`,
        "/api/tasks/search": "/api/tasks/search?size=5",
        "/api/tasks/search-v2": "/api/tasks/search-v2?size=5",
        "/api/v1/flows/:flow": `/api/v1/flows/${flowId}`,
        "/api/v1/flows/:flow/variables": `/api/v1/flows/${flowId}/variables`,
        "/api/v1/runs": "/api/v1/runs?limit=3",
        "/api/v1/runs/:run": `/api/v1/runs/${runId}`,
        "/api/v1/runs/:run/items": `/api/v1/runs/${runId}/items`,
        "/api/v1/runs/:run/flow": `/api/v1/runs/${runId}/flow`,
        "/api/v1/runs/:run/steps": `/api/v1/runs/${runId}/steps`,
        "/api/v1/runs/:run/steps/:step": `/api/v1/runs/${runId}/steps/none`,
        "/api/v1/blobs/:blob": `/api/v1/blobs/${blobId}`,
      };
      expect(Object.keys(paths).sort()).toEqual((await storedRoutes()).sort());
      const asked = Object.values(paths);
      const passedOn: string[] = [];
      for (const path of asked) {
        const before = await readsOf(node);
        const answer = await answerOf(node, path);
        expect({ path, ...answer }).toEqual({ path, ...(await answerOf(owner, path)) });
        expect({ path, isFound: answer.status < 300 }).toEqual({ path, isFound: !path.endsWith("/steps/none") });
        if ((await readsOf(node)) === before) passedOn.push(path);
      }
      expect(passedOn).toEqual([]);
      expect(await readsOf(owner)).toBe(0);
    });

    it("summarise runs as the owner does, except for their number", async () => {
      const { owner, node } = await setup();
      await node.result((await node.start(refused, null)).id);
      await node.result((await node.start(twice, { n: 5 })).id);
      await node.start(idle, null);
      const list = "/api/longshore/v1/runs?view=summary";
      const summaries = async (server: Server, query: string) => JSON.parse((await answerOf(server, list + query)).body);
      for (const query of ["", "&state=failed,running&workflow=refused,idle", "&text=no&limit=1", "&where=input.n:5", "&parent=none"]) {
        const before = await readsOf(node);
        const { of, ...shown } = await summaries(node, query);
        expect({ query, of, ...shown }).toEqual({ query, ...(await summaries(owner, query)), of: null });
        expect({ query, reads: await readsOf(node) }).toEqual({ query, reads: before + 1 });
      }
      expect(await summaries(node, "&waiting=true")).toMatchObject({ of: 3, items: [{ waiting: { step: "unserved" } }, {}, {}] });
    });

    it("are passed on when they need the state of running work", async () => {
      const { owner, node } = await setup();
      const { id } = await node.start(idle, null);
      const ours = "/api/longshore/v1";
      const asked = [`${ours}/runs/${id}/tasks`, `${ours}/tasks/${id}.0`, `${ours}/tasks`, `/api/workflow/${id}`];
      for (const path of asked) {
        const before = await readsOf(node);
        expect({ path, ...(await answerOf(node, path)) }).toEqual({ path, ...(await answerOf(owner, path)) });
        expect({ path, reads: await readsOf(node) }).toEqual({ path, reads: before });
      }
      expect((await answerOf(node, `${ours}/tasks/${id}.0`)).body).toContain("waiting");
    });

    it("find data that were acknowledged a moment ago", async () => {
      const { node } = await setup();
      for (let n = 0; n < 50; n++) {
        const { id } = await node.start(twice, { n });
        const reply = await fetch(`${node.url}/api/longshore/v1/runs/${id}/input`);
        expect(await reply.json()).toEqual({ n });
      }
      expect(await readsOf(node)).toBeGreaterThanOrEqual(50);
    });

    it("count a use of a blob that has not been used for long", async () => {
      const { node, schema } = await setup();
      const { hash } = JSON.parse(await post(node, "/api/longshore/v1/blobs", "content")) as { hash: string };
      const path = `/api/longshore/v1/blobs/${hash}`;
      await answerOf(node, path);
      expect(await readsOf(node)).toBe(1);
      await postgres().query(`UPDATE ${schema}.blob SET used_at = used_at - 7200000`);
      expect((await answerOf(node, path)).body).toBe("content");
      expect(await readsOf(node)).toBe(1);
    });
  });
