// A disk without room: new work is refused in words a client understands, reads go on, and nobody has to restart anything afterwards.
import { describe, expect, it } from "vitest";
import { claimJob, readRun, readTasks, report } from "./api.ts";
import { inArena } from "./arena.ts";
import type { Answer, Connection } from "./http.ts";
import { chain } from "./shapes.ts";
import { DISK_WAYS, type SmallDisk } from "./small-disk.ts";
import { until } from "./until.ts";

/** Starts that may still fit into room that the database had taken before the disk was full. */
const STARTS_MAX = 2000;
const RESUME_MS_MAX = 15_000;

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

async function fillAndResume(disk: SmallDisk): Promise<void> {
  await inArena(
    async ({ client, server }) => {
      const { connection } = client;
      const workflow = await client.create("chain", chain(2));
      const pid = server.pid() ?? 0;
      disk.fill(pid);

      const { refused, runIds } = await startUntilRefused(connection, workflow);
      expect(refused.status).toBe(503);
      expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
      const claim = await connection.request("POST", "/api/jobs/claim", { worker_id: "w", labels: [], lease_ttl_secs: 30 });
      expect({ status: claim.status, text: claim.text }).toEqual({ status: 200, text: "null" });
      expect((await connection.request("GET", "/api/longshore/v1/runs")).status).toBe(200);

      disk.makeRoom(pid);
      const resumed = await until("the server to take new work again", RESUME_MS_MAX, async () => {
        const answer = await start(connection, workflow);
        return answer.status === 201 && (JSON.parse(answer.text) as { id: string }).id;
      });
      const job = await until("a claim", RESUME_MS_MAX, () => claimJob(connection, { workerId: "w", ttlSecs: 30, waitSecs: 1 }));
      expect(await report(connection, job.leaseId, "complete", "after")).toBe(200);
      for (const runId of [...runIds, resumed]) expect(await readRun(connection, runId)).toMatchObject({ id: runId, state: "running" });
      expect((await readTasks(connection, job.runId)).find((task) => task.step === job.step)).toMatchObject({ completed: true });
    },
    { data: disk.directory, ...(disk.command ? { command: disk.command } : {}) },
  );
}

describe("a disk that is full", () => {
  const ways = DISK_WAYS.map((way) => ({ ...way, missing: way.missing() }));
  const ready = ways.filter((way) => way.missing === undefined);

  it.each(ready)("new work is refused with 503, reads go on and service resumes by itself: $name", async ({ open }) => {
    const disk = open();
    try {
      await fillAndResume(disk);
    } finally {
      disk.close();
    }
  });

  if (ready.length === 0) {
    it("new work is refused with 503, reads go on and service resumes by itself", (context) => {
      context.skip(`needs ${ways.map((way) => way.missing).join(", or ")}`);
    });
  }
});
