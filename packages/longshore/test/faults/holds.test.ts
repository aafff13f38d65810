// Holds whose worker or server was stopped, disconnected, or killed while it waited. Each test is one such case, step by step.
import { once } from "node:events";
import { connect as dial } from "node:net";
import { expect, it } from "vitest";
import { claimJob, heartbeat, readTasks, report } from "./api.ts";
import { type Arena, inArena } from "./arena.ts";
import type { Claim } from "./history.ts";
import { type Connection, connect } from "./http.ts";
import { chain, independent } from "./shapes.ts";
import { until } from "./until.ts";

const WAIT_MS_MAX = 15_000;
/** Far longer than a test waits: a worker that gets a job in time has not waited for the end of this lease. */
const LONG_TTL_SECS = 600;

const claimOne = (connection: Connection, ttlSecs: number): Promise<Claim> =>
  until("a claim", WAIT_MS_MAX, () => claimJob(connection, { workerId: "hand", ttlSecs, waitSecs: 1 }));

const untilOver = ({ expiresAt }: Claim): Promise<boolean> => until("the end of a lease", WAIT_MS_MAX, () => Date.now() > expiresAt);

const startOne = async ({ client }: Arena, jobs = independent(1)): Promise<string> => client.start(await client.create("holds", jobs));

/** The number of claims that wait at the server, as it reports it. */
const untilWaiting = ({ client }: Arena, count: number): Promise<boolean> =>
  until(`${count} waiting claims`, WAIT_MS_MAX, async () => {
    const { text } = await client.connection.request("GET", "/metrics");
    return Number(/^longshore_claims_waiting (\d+)$/m.exec(text)?.[1]) === count;
  });

it.concurrent("a server that was stopped past a lease refuses its late heartbeat and report, and hands the job out again", async () => {
  await inArena(async (arena) => {
    const runId = await startOne(arena);
    const { connection } = arena.client;
    const first = await claimOne(connection, 1);
    arena.server.pause();
    // A healthy worker sends them in time, and they wait in the server's sockets.
    const beat = heartbeat(connection, first.leaseId);
    const late = report(connection, first.leaseId, "complete", "late");
    await untilOver(first);
    arena.server.resume();
    expect((await beat).status).toBe(409);
    expect(await late).toBe(409);

    const second = await claimOne(connection, 30);
    expect(second).toMatchObject({ step: first.step, attempt: first.attempt + 1 });
    expect(await report(connection, second.leaseId, "complete", "second")).toBe(200);
    expect(await readTasks(connection, runId)).toMatchObject([{ completed: true, token: "second", failures: 0 }]);
  });
});

it.concurrent("a job that was handed out into a silent network goes to another worker after its lease, and the late report is refused", async () => {
  await inArena(async (arena) => {
    const link = await arena.addLink();
    const cutOff = connect(link.url, 2);
    const answer = claimJob(cutOff, { workerId: "cut-off", ttlSecs: 1, waitSecs: 20 });
    await untilWaiting(arena, 1);
    link.silence();
    const runId = await startOne(arena);
    const { connection } = arena.client;
    const second = await claimOne(connection, 30);
    expect(second.attempt).toBe(1);

    link.restore();
    const first = await answer;
    expect(first).toMatchObject({ runId, step: second.step, attempt: 0 });
    const leaseId = first?.leaseId ?? "";
    expect((await heartbeat(cutOff, leaseId)).status).toBe(409);
    expect(await report(cutOff, leaseId, "complete", "late")).toBe(409);
    expect(await report(cutOff, leaseId, "fail", "late")).toBe(409);
    expect((await heartbeat(connection, second.leaseId)).status).toBe(200);
    expect(await report(connection, second.leaseId, "complete", "second")).toBe(200);
    expect(await readTasks(connection, runId)).toMatchObject([{ completed: true, token: "second", failures: 0 }]);
    cutOff.close();
  });
});

it.concurrent("a completion that the network delayed beyond the lease is refused, and that of the next holder counts", async () => {
  await inArena(async (arena) => {
    const link = await arena.addLink();
    const slow = connect(link.url, 2);
    const runId = await startOne(arena, chain(2));
    const first = await claimOne(slow, 1);
    link.silence();
    const late = report(slow, first.leaseId, "complete", "late");
    const { connection } = arena.client;
    const second = await claimOne(connection, 30);
    expect(await report(connection, second.leaseId, "complete", "second")).toBe(200);
    link.restore();
    expect(await late).toBe(409);
    const next = await claimOne(connection, 30);
    expect(next).toMatchObject({ runId, step: "link-1", upstream: { "link-0": "second" } });
    slow.close();
  });
});

it.concurrent("claims that wait when their worker is killed -9 do not withhold jobs from others", async () => {
  await inArena(async (arena) => {
    const slots = 16;
    const habits = { slots, ttlSecs: LONG_TTL_SECS, waitSecs: 20, workMs: [0, 0] as [number, number], failRate: 0, dozeRate: 0 };
    const doomed = arena.addWorker({ ...habits, seed: 1 });
    await doomed.start();
    await untilWaiting(arena, slots);
    await doomed.kill();
    const runId = await startOne(arena, independent(slots));
    for (let job = 0; job < slots; job++) {
      const claim = await claimOne(arena.client.connection, LONG_TTL_SECS);
      expect(claim).toMatchObject({ runId, attempt: 0 });
      expect(await report(arena.client.connection, claim.leaseId, "complete", "done")).toBe(200);
    }
    await untilWaiting(arena, 0);
  });
});

it.concurrent("a waiting claim whose client has closed its half of the connection does not withhold jobs from others", async () => {
  await inArena(async (arena) => {
    const body = JSON.stringify({ worker_id: "half", labels: [], lease_ttl_secs: LONG_TTL_SECS, wait_secs: 20 });
    const { port } = new URL(arena.url);
    const socket = dial({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
    const head = ["POST /api/jobs/claim HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", `content-length: ${body.length}`];
    socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
    await untilWaiting(arena, 1);
    const answered: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => answered.push(chunk));
    const ended = once(socket, "end");
    socket.end();
    const runId = await startOne(arena);
    expect(await claimOne(arena.client.connection, 30)).toMatchObject({ runId, attempt: 0 });
    await ended;
    expect(Buffer.concat(answered).toString("utf8")).toBe("");
  });
});
