// A server that shares a MongoDB with its workers.

import { serve } from "longshore/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectMongo } from "../../../src/protocols/flowkit/wire/artifacts/mongo-db.ts";
import { mongoArtifacts } from "../../../src/protocols/flowkit/worker/artifacts/mongo.ts";
import { flowkit, streamTask } from "../../../src/protocols/flowkit/worker/index.ts";
import { work } from "../../../src/work.ts";
import { mongoMissing, sharedMongo } from "../../support/mongo.ts";

describe.skipIf(mongoMissing)(`a server with a MongoDB${mongoMissing ? `: ${mongoMissing}` : ""}`, () => {
  it("[T53] ends a node without starting it when its complete artifact already exists", async () => {
    const { url, database } = await sharedMongo();
    const mongo = `${url.replace(/\/$/, "")}/${database}`;
    const server = await serve({ ephemeral: true, port: 0, flowkit: { mongo } });
    onTestFinished(() => server.close());
    const graph = {
      nodes: [
        { node_id: "u", type: "src" },
        { node_id: "d", type: "sink", depends_on: ["u"] },
      ],
    };
    const task_id = (await server.flowkit?.createTask({ graph })) as string;
    const { db, close } = await connectMongo({ url: mongo });
    onTestFinished(close);
    await mongoArtifacts(db).complete({ taskId: task_id, nodeId: "u", epoch: 1, workerId: "py" }, { total: 9 });
    const started: string[] = [];
    const role = (name: string) => streamTask(name, { init: ({ node_id }) => started.push(node_id), processBatch: () => ({}) });
    const on = flowkit({ url: server.url as string, mongo });
    await using _worker = await work({ tasks: [role("src"), role("sink")], on, signals: false, logger: false });
    expect(await server.result(task_id)).toMatchObject({ state: "succeeded" });
    expect(started).toEqual(["d"]);
    const answer = await fetch(`${server.url}/flowkit/v1/tasks/${task_id}/artifacts?node=u`);
    expect(await answer.json()).toMatchObject({ complete: { status: "complete", meta: { total: 9 } } });
  });
});
