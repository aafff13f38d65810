// Tests what a kill cannot show: the server sends a response only after it has synced the data that the response acknowledges. The test reads
// the system calls of the server.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { cancelRun, claimJob, report } from "./api.ts";
import { inArena } from "./arena.ts";
import { SERVER_PROGRAM } from "./processes.ts";
import { independent } from "./shapes.ts";
import { readTrace } from "./trace.ts";

const JOBS = 20;
const missing = spawnSync("strace", ["-V"]).status === 0 ? undefined : "the command strace (Debian package strace)";

it("every start, claim, completion, failure and cancel gets its response after its change was synced to the disk", async (context) => {
  if (missing) return context.skip(`needs ${missing}`);
  const directory = mkdtempSync(join(tmpdir(), "longshore-trace-"));
  const trace = join(directory, "trace");
  // strace runs as a grandchild, so that the arena kills the server. Without -f, strace traces only the thread of the store.
  const calls = "trace=pwrite64,pwritev,fdatasync,fsync,write,writev,sendto,sendmsg";
  const command = ["strace", "-D", "-qq", "-yy", "-s", "16", "-e", calls, "-o", trace, process.execPath, SERVER_PROGRAM];
  await inArena(
    async ({ client }) => {
      const { connection } = client;
      const workflow = await client.create("sync", independent(JOBS));
      await client.start(workflow);
      const before = readTrace(readFileSync(trace, "utf8")).length;
      for (let job = 0; job < JOBS; job++) {
        const claim = await claimJob(connection, { workerId: "w", ttlSecs: 60, waitSecs: 0 });
        await report(connection, claim?.leaseId ?? "", job % 4 === 0 ? "fail" : "complete", "token");
      }
      await cancelRun(connection, await client.start(workflow));
      const answers = readTrace(readFileSync(trace, "utf8")).slice(before);
      expect(answers).toHaveLength(2 * JOBS + 2);
      for (const answer of answers) {
        expect(answer).toMatchObject({ unsynced: false });
        expect(answer.status).toBeLessThan(300);
        expect(answer.syncs).toBeGreaterThan(0);
      }
    },
    { command },
  );
  rmSync(directory, { recursive: true });
});
