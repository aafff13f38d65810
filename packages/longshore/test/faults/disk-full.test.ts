// A disk without space: new work is refused with an error that clients understand, reads continue, and nothing has to be restarted
// afterwards.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { claimJob, heartbeat, readRun, readTasks, report } from "./api.ts";
import { inArena } from "./arena.ts";
import type { Claim } from "./history.ts";
import type { Answer, Connection } from "./http.ts";
import { chain } from "./shapes.ts";
import { DISK_WAYS, type SmallDisk } from "./small-disk.ts";
import { until } from "./until.ts";

/** Starts that may still fit into space that the database had allocated before the disk was full. */
const STARTS_MAX = 2000;
const RESUME_MS_MAX = 30_000;
/** The lease of the job that a worker keeps. It is renewed ten times as often as needed, because a busy machine may be late. */
const TERM_SECS = 4;
const BEATS_A_TERM = 10;

const start = (connection: Connection, workflow: string): Promise<Answer> =>
  connection.request("POST", "/api/longshore/v1/runs", { workflow, input: {} });

async function startUntilRefused(connection: Connection, workflow: string): Promise<{ refused: Answer; runIds: string[] }> {
  const runIds: string[] = [];
  while (runIds.length < STARTS_MAX) {
    const answer = await start(connection, workflow);
    if (answer.status !== 201) return { refused: answer, runIds };
    runIds.push((JSON.parse(answer.text) as { id: string }).id);
  }
  throw new Error(`${STARTS_MAX} runs were started on a full disk`);
}

/** A healthy worker: sends heartbeats from now on. The returned function stops it and returns the response to each heartbeat. */
function keepBeating(connection: Connection, { leaseId, ttlMs }: Claim): () => Promise<number[]> {
  const over = new AbortController();
  const beat = async (): Promise<number[]> => {
    const statuses: number[] = [];
    while (!over.signal.aborted) {
      statuses.push((await heartbeat(connection, leaseId)).status);
      await pause(ttlMs / BEATS_A_TERM);
    }
    return statuses;
  };
  const beating = beat();
  // The test has failed: the responses do not matter.
  beating.catch(() => undefined);
  return () => {
    over.abort();
    return beating;
  };
}

async function fillAndResume(disk: SmallDisk): Promise<void> {
  await inArena(
    async ({ client, server }) => {
      const { connection } = client;
      const workflow = await client.create("chain", chain(2));
      const pid = server.pid() ?? 0;
      const first = await client.start(workflow);
      const held = (await claimJob(connection, { workerId: "busy", ttlSecs: TERM_SECS, waitSecs: 1 })) as Claim;
      // From the beginning, because the time until the disk is full depends on the disk.
      const beats = keepBeating(connection, held);
      disk.fill(pid);
      const filledAt = Date.now();

      const { refused, runIds } = await startUntilRefused(connection, workflow);
      expect(refused.status).toBe(503);
      expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
      const claim = await connection.request("POST", "/api/jobs/claim", { worker_id: "w", labels: [], lease_ttl_secs: 30 });
      expect({ status: claim.status, text: claim.text }).toEqual({ status: 200, text: "null" });
      expect((await connection.request("GET", "/api/longshore/v1/runs")).status).toBe(200);
      // The worker keeps its job for longer than a lease, although the server cannot accept its result yet.
      await until("more than a term", 2 * held.ttlMs, () => Date.now() > filledAt + 1.5 * held.ttlMs);
      await expect(report(connection, held.leaseId, "complete", "during")).rejects.toMatchObject({ status: 503 });

      disk.makeRoom(pid);
      const resumed = await until("the server to take new work again", RESUME_MS_MAX, async () => {
        const answer = await start(connection, workflow);
        return answer.status === 201 && (JSON.parse(answer.text) as { id: string }).id;
      });
      expect(new Set(await beats())).toEqual(new Set([200]));
      expect(await report(connection, held.leaseId, "complete", "kept")).toBe(200);
      const job = await until("a claim", RESUME_MS_MAX, () => claimJob(connection, { workerId: "w", ttlSecs: 30, waitSecs: 1 }));
      expect(await report(connection, job.leaseId, "complete", "after")).toBe(200);
      for (const runId of [first, ...runIds, resumed])
        expect(await readRun(connection, runId)).toMatchObject({ id: runId, state: "running" });
      expect((await readTasks(connection, job.runId)).find((task) => task.step === job.step)).toMatchObject({ completed: true });
    },
    { data: disk.directory, ...(disk.command ? { command: disk.command } : {}) },
  );
}

async function dieAndComeBack(disk: SmallDisk): Promise<void> {
  await inArena(
    async ({ client, server, directory }) => {
      const workflow = await client.create("chain", chain(2));
      const { connection } = client;
      const runId = await client.start(workflow);
      const held = await claimJob(connection, { workerId: "w", ttlSecs: 60, waitSecs: 1 });
      const pid = server.pid() ?? 0;
      disk.fill(pid);
      const { runIds } = await startUntilRefused(connection, workflow);
      const known = async (): Promise<void> => {
        for (const id of [runId, ...runIds]) expect(await readRun(connection, id)).toMatchObject({ state: "running" });
      };
      // After kill -9 its files have the same size, so it can start again.
      await server.kill();
      await server.start();
      await known();
      // A graceful stop frees some of that space, and another process uses it.
      await server.end();
      disk.fill(pid);
      await expect(server.start()).rejects.toThrow("did not become ready");
      expect(readFileSync(join(directory, "server.log"), "utf8")).toMatch(/The data folder \S+ cannot be used: .+ Make room/);

      disk.makeRoom(pid);
      await server.start();
      await known();
      expect(await report(connection, held?.leaseId ?? "", "complete", "kept")).toBe(200);
    },
    { data: disk.directory },
  );
}

describe("a disk that is full", () => {
  const ways = DISK_WAYS.map((way) => ({ ...way, missing: way.missing() }));
  const ready = ways.filter((way) => way.missing === undefined);

  it.concurrent.each(ready)("new work is refused with 503, reads continue and service resumes automatically: $name", async ({ open }) => {
    const disk = open();
    try {
      await fillAndResume(disk);
    } finally {
      disk.close();
    }
  });

  it.concurrent("a killed server restarts, a server that cannot start reports why, and nothing is lost", async (context) => {
    const way = ways.find(({ outlivesServer }) => outlivesServer);
    if (way?.missing !== undefined) return context.skip(`needs ${way.missing}`);
    const disk = way?.open() as SmallDisk;
    try {
      await dieAndComeBack(disk);
    } finally {
      disk.close();
    }
  });

  if (ready.length === 0) {
    it("new work is refused with 503, reads continue and service resumes automatically", (context) => {
      context.skip(`needs ${ways.map((way) => way.missing).join(", or ")}`);
    });
  }
});
