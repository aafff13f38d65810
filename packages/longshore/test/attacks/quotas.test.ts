// The attacker holds a worker or an operator token and stays below the limit of every single request. Many blobs, task definitions, parts,
// records of the bus, logs or failures fill the disk to which runs are written. Runs that start other runs grow with every level.

import { expect, it, onTestFinished } from "vitest";
import { blobFileBytes } from "../../src/engine/blob/local-blobs.ts";
import { attemptsKeptMax } from "../../src/engine/board/task.ts";
import { serve } from "../../src/server/index.ts";
import { startAdminServer } from "../support/admin.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";
import { openEngineWithStore } from "../support/engine.ts";
import { eventually } from "../support/workflow-graph.ts";

const bytes = { "content-type": "application/octet-stream" };

it("blobs are refused when all of them together reach the quota, also after a restart", async () => {
  const quotas = { blobBytes: 3 * (blobFileBytes + 300) + blobFileBytes + 100 };
  const before = await startAdminServer({ quotas });
  const put = (server: typeof before, content: string) => server.api("POST", "/blobs", content, bytes);
  const kept = await Promise.all(["a", "b", "c", "d"].map((letter) => put(before, letter.repeat(300))));
  expect(kept.map(({ status }) => status).sort()).toEqual([201, 201, 201, 507]);
  const refused = kept.find(({ status }) => status === 507);
  const expected = `at most ${quotas.blobBytes} bytes`;
  expect(refused?.body.error).toMatchObject({ code: "LONGSHORE_LIMIT", field: "quotas.blobBytes", expected });
  // Refused content left nothing behind, and a second copy needs no space.
  expect((await put(before, "a".repeat(300))).status).toBe(507);
  expect((await put(before, "e".repeat(100))).status).toBe(201);
  await before.close();
  const after = await startAdminServer({ quotas: { blobBytes: quotas.blobBytes + blobFileBytes + 50 } }, before);
  expect((await put(after, "f".repeat(60))).status).toBe(507);
  expect((await put(after, "f".repeat(50))).status).toBe(201);
});

it("blobs of a few bytes count as the space of their files, and their names also count", async () => {
  const engine = await openEngineWithStore({ directory: null, quotas: { blobBytes: 100_000 } });
  onTestFinished(() => engine.close());
  let kept = 0;
  await expect(
    (async () => {
      for (; kept < 1_000; kept++) await engine.blobs.put(Buffer.from(`${kept}`));
    })(),
  ).rejects.toMatchObject({ detail: { field: "quotas.blobBytes" } });
  expect(kept).toBe(Math.floor(100_000 / (blobFileBytes + 2)));
  const note = (text: string) => engine.blobs.put(Buffer.from("0"), { note: text });
  await expect(note("n".repeat(100_000))).rejects.toMatchObject({ detail: { field: "quotas.blobBytes" } });
});

it("task definitions of a worker token are refused at their quota, and the metrics show it", async () => {
  const { post, metrics } = await production({ documentBytes: 20_000 });
  const define = (at: number) => post("/api/metadata/taskdefs", [{ name: `task${at}`, description: "d".repeat(1_000) }]);
  const statuses = await until507(define);
  expect(statuses.length).toBeLessThan(20);
  const refused = await define(99);
  expect(refused.text).toContain("all documents together may have 20000 bytes");
  expect(refused.text).toContain("--document-bytes");
  expect(await metrics()).toMatch(/longshore_stored_bytes\{kind="documents"\} 1\d{4}\n/);
  expect(await metrics()).toContain('longshore_stored_refused_total{kind="documents"} 2\n');
});

it("records that a worker token publishes on the bus are refused at their quota", async () => {
  const { post } = await production({ busBytes: 20_000 });
  const publish = (at: number) =>
    post("/flowkit/v1/bus/publish", { records: [{ topic: `status.role${at}.v1`, key: null, value: "v".repeat(1_000) }] });
  const statuses = await until507(publish);
  expect(statuses.length).toBeLessThan(20);
  expect((await publish(99)).text).toContain("--bus-bytes");
});

it("a quota that workers have used up does not prevent the coordinator from sending commands", async () => {
  const engine = await openEngineWithStore({ directory: null, quotas: { busBytes: 2_000 } });
  onTestFinished(() => engine.close());
  const value = "v".repeat(1_000);
  const publish = (topic: string, by: "own" | "guest") => engine.busLog.append([{ topic, key: null, value }], by);
  await publish("status.a.v1", "guest");
  await expect(publish("status.a.v1", "guest")).rejects.toMatchObject({ detail: { field: "quotas.busBytes" } });
  await publish("cmd.a.v1", "own");
  expect(engine.store.stored.of("bus").used).toBe(2 * (1_000 + 64));
});

it("parts of one task are refused at the quota of all parts, and removed tasks free their space", async () => {
  const engine = await openEngineWithStore({ directory: null, quotas: { partBytes: 20_000 } });
  onTestFinished(() => engine.close());
  await engine.board.post([{ id: "t", step: "a", lanes: [{ name: "work", labels: [] }], input: "null", policy: null }]);
  const { tasks } = await engine.store.board.claim({ reach: { names: ["work"], labels: [] }, holder: "w", termMs: 60_000, max: 1 });
  const hold = { taskId: "t", grant: tasks[0]?.grant as number };
  const put = (uid: string) => engine.parts.put(hold, [{ uid, value: JSON.stringify("v".repeat(1_000)) }]);
  let kept = 0;
  await expect(
    (async () => {
      for (; kept < 100; kept++) await put(`p${kept}`);
    })(),
  ).rejects.toMatchObject({ code: "LONGSHORE_LIMIT", detail: { field: "quotas.partBytes" } });
  expect(kept).toBe(18);
  expect(await engine.parts.count("t")).toBe(18);
  // Stored parts may be sent again.
  expect(await put("p0")).toBe("ok");
});

it("a task that fails at once again and again keeps only its newest attempts, and other tasks get their turn", async () => {
  const engine = await openEngineWithStore({ directory: null, quotas: { attemptBytes: 50_000 } });
  onTestFinished(() => engine.close());
  const lanes = [{ name: "work", labels: [] }];
  const policy = JSON.stringify({ failures: 1_000_000, lost: 0, backoff: { kind: "fixed", delayMs: 0 } });
  await engine.board.post([{ id: "endless", step: "a", lanes, input: "null", policy }]);
  await engine.board.post([{ id: "other", step: "a", lanes, input: "null", policy: null }]);
  const claim = async () => {
    const request = { reach: { names: ["work"], labels: [] }, holder: "w", termMs: 60_000, max: 1 };
    return (await engine.store.board.claim(request)).tasks[0] as { id: string; grant: number };
  };
  const order: string[] = [];
  for (let at = 0; at < attemptsKeptMax + 50; at++) {
    const { id: taskId, grant } = await claim();
    order.push(taskId);
    await engine.board.fail({ taskId, grant }, { error: "e".repeat(1_000), retryable: true });
  }
  // After the other task, although it was queued again at once.
  expect(order.slice(0, 3)).toEqual(["endless", "other", "endless"]);
  const rows = engine.store.db.prepare("SELECT count(*) AS count, total(length(error)) AS chars, min(attempt) AS first FROM attempt").get();
  expect(rows).toMatchObject({ count: attemptsKeptMax, first: 49 });
  expect(rows?.chars).toBeLessThan(50_000);
  const attempts = await engine.reader.attempts("endless");
  expect(attempts).toHaveLength(attemptsKeptMax + 1);
});

it("the runs of all levels below one root are limited by the quota, and the step that would start one more reports why", async () => {
  const c = await startConductor({ quotas: { familyRuns: 20 } });
  await c.taskDef({ name: "leaf", retryCount: 0 });
  await c.workflow({ name: "bottom", tasks: [simple("leaf")] });
  await c.workflow({ name: "middle", tasks: forked("bottom", 6) });
  await c.workflow({ name: "top", tasks: forked("middle", 5) });
  const id = await c.start("top");
  const all = async () => (await c.read<{ results: Found[] }>("/workflow/search?size=100")).results;
  await eventually(async () => (await all()).every(({ status }) => status !== "RUNNING"));
  const found = await all();
  expect(found.length).toBeLessThan(1 + 5 + 30);
  expect(await c.status(id)).toBe("FAILED");
  expect(found.some(({ reasonForIncompletion }) => reasonForIncompletion?.includes(`Run ${id} has the maximum of 20 open runs`))).toBe(
    true,
  );
  // There is space again for the next run.
  await c.workflow({ name: "small", tasks: forked("bottom", 20) });
  const next = await c.start("small");
  expect((await c.run(next)).tasks.filter(({ subWorkflowId }) => subWorkflowId !== undefined)).toHaveLength(20);
});

/** A server with a token for workers, and what such a worker sends. */
async function production(quotas: NonNullable<Parameters<typeof serve>[0]>["quotas"]) {
  const secrets = { worker: "worker-secret-0123456789", read: "read-secret-0123456789" };
  const tokens = [`worker:${secrets.worker}:w`, `read:${secrets.read}:r`];
  const server = await serve({ ephemeral: true, port: 0, tokens, quotas, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const headers = (who: keyof typeof secrets) => ({ authorization: `Bearer ${secrets[who]}`, "content-type": "application/json" });
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${server.url}${path}`, { method: "POST", headers: headers("worker"), body: JSON.stringify(body) });
    return { status: answer.status, text: await answer.text() };
  };
  const metrics = async () => (await fetch(`${server.url}/metrics`, { headers: headers("read") })).text();
  return { post, metrics };
}

/** Sends until the quota is reached. Every response before is a success. */
async function until507(send: (at: number) => Promise<{ status: number }>): Promise<number[]> {
  const statuses: number[] = [];
  while (statuses.at(-1) !== 507 && statuses.length < 100) statuses.push((await send(statuses.length)).status);
  expect(new Set(statuses.slice(0, -1))).toEqual(new Set([200]));
  expect(statuses.at(-1)).toBe(507);
  return statuses;
}

interface Found {
  status: string;
  reasonForIncompletion?: string;
}

/** A fork that starts this workflow in every branch, and waits for all of them. */
function forked(name: string, branches: number): object[] {
  const refs = Array.from({ length: branches }, (_none, at) => `${name}${at}`);
  const start = (ref: string) => [{ name: ref, taskReferenceName: ref, type: "SUB_WORKFLOW", subWorkflowParam: { name } }];
  return [
    { name: "fork", taskReferenceName: "fork", type: "FORK_JOIN", forkTasks: refs.map(start) },
    { name: "join", taskReferenceName: "join", type: "JOIN", joinOn: refs },
  ];
}
