// A third backend shows that only the port is needed: assignments are files in a folder, and the worker that renames a file has the task.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { deliver, type Recipient } from "../../../../src/protocols/stepflow/server/queue/courier.ts";
import type { TaskQueue } from "../../../../src/protocols/stepflow/server/queue/queue.ts";
import { TaskAssignment } from "../../../../src/protocols/stepflow/wire/messages.ts";
import { type QueueWorld, queueWorld } from "../../../support/stepflow-queue.ts";
import { until } from "../../../support/until.ts";
import { lifecycleSuite } from "./suite.ts";

/** Puts one task at a time into `folder`. Returns how to stop. */
function spool(queue: TaskQueue, folder: string, { clock, grpc }: QueueWorld): () => Promise<void> {
  const stopping = new AbortController();
  let count = 0;
  let file = "";
  const recipient: Recipient = {
    gone: stopping.signal,
    ready: () => ({ offerMs: 10_000, orchestratorServiceUrl: grpc.target }),
    async send(assignment) {
      file = join(folder, `${String(++count).padStart(6, "0")}.task`);
      writeFileSync(`${file}.part`, TaskAssignment.encode(assignment));
      renameSync(`${file}.part`, file);
    },
    lapsed: () => rmSync(file, { force: true }),
  };
  const running = deliver(queue, recipient, clock).catch(() => {});
  return async () => {
    stopping.abort();
    await running;
  };
}

function ready(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".task"))
    .sort();
}

async function take(folder: string): Promise<TaskAssignment> {
  await until(() => ready(folder).length > 0);
  const [name = ""] = ready(folder);
  renameSync(join(folder, name), join(folder, `${name}.taken`));
  return TaskAssignment.decode(readFileSync(join(folder, `${name}.taken`)));
}

async function open(world: QueueWorld) {
  const root = mkdtempSync(join(tmpdir(), "longshore-spool-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const folderOf = (queue: string) => join(root, queue);
  const stops = ["python", "gpu"].map((name) => {
    mkdirSync(folderOf(name));
    return spool(world.queues.find(name)?.queue as TaskQueue, folderOf(name), world);
  });
  onTestFinished(async () => void (await Promise.all(stops.map((stop) => stop()))));
  return { folderOf, stop: async () => void (await Promise.all(stops.map((stop) => stop()))) };
}

lifecycleSuite("a folder", {
  backend: "grpc",
  async open(world) {
    const { folderOf } = await open(world);
    return {
      worker: async (queue) => ({ next: () => take(folderOf(queue)), waiting: () => ready(folderOf(queue)).length }),
    };
  },
});

describe("a foreign backend", () => {
  it("[S-QUEUE-06] needs only the port: it receives tasks, delivers them, and gives back undelivered ones when it stops", async () => {
    const world = await queueWorld();
    const { folderOf, stop } = await open(world);
    await world.post("t");
    await until(() => ready(folderOf("python")).length > 0);
    expect((await world.task("t")).state).toBe("offered");
    await stop();
    expect(await world.becomes("t", "queued")).toMatchObject({ attempt: 0, lost: 0, grant: 2 });
  });
});
