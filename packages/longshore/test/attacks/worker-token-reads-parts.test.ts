// The attacker holds a worker token and knows the ids of a FlowKit task of other workers. These ids were enough to read what the task's nodes
// have produced.

import { expect, it, onTestFinished } from "vitest";
import { type Caller, callerWith } from "../../src/core/actions.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { HttpRequest, Route } from "../../src/net/http/http.ts";
import { artifactRoutes } from "../../src/protocols/flowkit/server/artifacts/routes.ts";
import type { Attempt } from "../../src/protocols/flowkit/wire/artifacts/artifacts.ts";
import { openOwnArtifacts } from "../support/flowkit-artifacts.ts";

async function produced() {
  const world = await openOwnArtifacts();
  onTestFinished(() => world.close());
  const [source, reader] = (await world.begin(["source", "reader"])) as [Attempt, Attempt];
  await world.store.putPartials(source, [{ uid: "u", meta: { secret: "of the task" } }]);
  const { routes } = artifactRoutes({ artifacts: world.store, clock: systemClock });
  const { handle } = routes.find(({ method, path }) => method === "POST" && path.endsWith("/read")) as Route & {
    handle(request: HttpRequest): Promise<{ body?: unknown }>;
  };
  const read = async (caller: Caller, { taskId, nodeId, epoch, workerId }: Attempt) => {
    const attempt = { task_id: taskId, node_id: nodeId, attempt_epoch: epoch, worker_id: workerId };
    const body = JSON.stringify({ ...attempt, sources: [{ node_id: "source", after: 0 }], wait_ms: 0 });
    return String((await handle({ caller, text: body, gone: new AbortController().signal } as unknown as HttpRequest)).body);
  };
  return { world, reader, read };
}

const worker = callerWith("worker", ["worker"]);

it("a worker token can read parts for a node that its worker holds, and for no other node", async () => {
  const { reader, read } = await produced();
  expect(await read(worker, reader)).toContain("of the task");
  const guesses: Partial<Attempt>[] = [
    { epoch: reader.epoch + 1 },
    { epoch: 0 },
    { workerId: "someone else" },
    { nodeId: "none" },
    { taskId: "none" },
  ];
  for (const guess of guesses)
    await expect(read(worker, { ...reader, ...guess })).rejects.toMatchObject({ code: "LONGSHORE_UNAUTHORIZED" });
});

it("an attempt can read no more when a later attempt has begun", async () => {
  const { world, reader, read } = await produced();
  const next = await world.again(reader);
  await expect(read(worker, reader)).rejects.toMatchObject({
    code: "LONGSHORE_UNAUTHORIZED",
    message: expect.stringContaining(`does not hold attempt ${reader.epoch} of node "reader"`),
  });
  expect(await read(worker, next)).toContain("of the task");
});

it("a token that may read runs can read their parts without a hold", async () => {
  const { reader, read } = await produced();
  expect(await read(callerWith("both", ["worker", "read"]), { ...reader, epoch: 0 })).toContain("of the task");
});
