// What the server has acknowledged is still valid after the server was killed: a real process, a real file, SIGKILL.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../support/parts.ts";
import { conversation, job } from "../../support/workflow-graph.ts";

const built = fileURLToPath(new URL("../../../dist/server/index.js", import.meta.url));

async function startProcess(data: string) {
  const program = `
    const { serve } = await import(${JSON.stringify(built)});
    const server = await serve({ data: ${JSON.stringify(data)}, port: 0 });
    process.stdout.write(server.url);`;
  const child: ChildProcess = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [url] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  const kill = async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return { ...conversation(url.toString()), kill };
}

describe("a server that was killed", () => {
  it("[G28] still knows valid leases: a heartbeat gets 200 and a completion is accepted", async () => {
    const data = temporaryFolder();
    const first = await startProcess(data);
    const id = await first.start(job("a"), job("b", { depends_on: ["a"] }));
    const { lease } = await first.take();
    await first.kill();
    const second = await startProcess(data);
    expect(await second.heartbeat(lease.lease_id)).toBe(200);
    expect(await second.states(id)).toEqual({ a: "running", b: "queued" });
    expect(await second.complete(lease.lease_id, { v: "1" })).toBe(200);
    expect((await second.take()).job).toMatchObject({ job_id: "b", upstream_outputs: { a: { v: "1" } } });
  });

  it("[W-PY-01, G39] keeps every result that it acknowledged, and what follows from it", async () => {
    const data = temporaryFolder();
    const first = await startProcess(data);
    const ids = await Promise.all(Array.from({ length: 20 }, () => first.start(job("a"), job("b", { depends_on: ["a"] }))));
    const leases = await Promise.all(ids.map(() => first.take()));
    const answers = await Promise.all(leases.map(({ lease }) => first.complete(lease.lease_id, { done: "yes" })));
    await first.kill();
    expect(answers).toEqual(Array(20).fill(200));
    const second = await startProcess(data);
    for (const id of ids) expect(await second.states(id)).toEqual({ a: "success", b: "queued" });
    // The same worker continues without registering again.
    const next = await Promise.all(ids.map(() => second.take()));
    expect(next.map(({ job: given }) => [given.job_id, given.upstream_outputs])).toEqual(Array(20).fill(["b", { a: { done: "yes" } }]));
  });

  it("keeps logs and cancels", async () => {
    const data = temporaryFolder();
    const first = await startProcess(data);
    const id = await first.start(job("a"));
    const { lease } = await first.take();
    const chunk = { workflow_id: id, job_id: "a", sequence: 0, data: "before\n", timestamp_ms: 5 };
    expect(await first.push(lease.lease_id, chunk)).toBe(200);
    expect((await first.post(`/api/workflows/${id}/cancel`)).status).toBe(202);
    await first.kill();
    const second = await startProcess(data);
    expect(await second.push(lease.lease_id, chunk)).toBe(200);
    expect((await second.logs(id, "a")).map((stored) => stored.data)).toEqual(["before\n"]);
    expect(await second.cancelled(id, "a")).toBe(true);
    expect(await second.states(id)).toEqual({ a: "cancelled" });
  });
});
