// A server as a whole: how it starts, what it does when its store cannot be written, and how it ends.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { startAdminServer, startOnSmallDisk } from "../../test/support/admin.ts";
import { temporaryFolder } from "../../test/support/parts.ts";
import { eventually, job, startGraphServer } from "../../test/support/workflow-graph.ts";
import { task } from "../core/task.ts";
import { graph } from "../graph.ts";
import type { Ref } from "../reference.ts";
import { work } from "../work.ts";
import { type ServeOptions, serve } from "./index.ts";

async function startQuietly(options: ServeOptions) {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" }, ...options });
  onTestFinished(() => server.close());
  return server;
}

describe("a server that starts", () => {
  it("without a socket has no URL and works", async () => {
    const server = await startQuietly({ port: null });
    expect([server.url, server.port]).toEqual([null, null]);
    const greet = task("greet", async (name: string) => `Hello, ${name}!`);
    const worker = await work({ tasks: [greet], on: server });
    expect(await server.call(greet, "you")).toBe("Hello, you!");
    await worker.stop();
  });

  it("defines the sample only when this is requested and no other workflow is defined", async () => {
    const idsOf = async (get: (path: string) => Promise<{ text: string }>) =>
      (JSON.parse((await get("/api/workflows")).text) as { id: string }[]).map(({ id }) => id);
    expect(await idsOf((await startGraphServer()).get)).toEqual([]);
    const first = await startGraphServer({ sample: true });
    expect(await idsOf(first.get)).toEqual(["ci-1"]);
    const workflows = temporaryFolder();
    writeFileSync(join(workflows, "mine.yml"), "name: M\non: push\njobs:\n  a: { run: 'true' }\n");
    expect(await idsOf((await startGraphServer({ sample: true, workflows })).get)).toEqual(["mine"]);
  });

  it("beyond loopback needs tokens or an explicit option", async () => {
    await expect(serve({ ephemeral: true, port: 0, host: "0.0.0.0" })).rejects.toMatchObject({ code: "LONGSHORE_BAD_CONFIG" });
    const server = await startQuietly({ host: "127.0.0.2", insecure: true });
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.2:/);
  });

  it("reports a port or a folder that is in use, and leaves nothing open", async () => {
    const { server, data } = await startGraphServer();
    await expect(serve({ data, port: 0 })).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
    const other = temporaryFolder();
    await expect(serve({ data: other, port: server.port })).rejects.toThrow(/in use/);
    const third = await serve({ data: other, port: 0 });
    await third.close();
  });

  it("leaves a folder unlocked when it cannot use it", async () => {
    const data = temporaryFolder();
    writeFileSync(join(data, "blobs"), "in the way");
    await expect(serve({ data, port: null })).rejects.toThrow();
    rmSync(join(data, "blobs"));
    const server = await serve({ data, port: null });
    await server.close();
  });

  it("reads tokens from a file in addition to those of the options", async () => {
    const tokenFile = join(temporaryFolder(), "tokens");
    writeFileSync(tokenFile, "# for people\nread:from-the-file-0123456789\n");
    const { send } = await startGraphServer({ tokens: ["from-the-options-0123456789"], tokenFile, logger: { level: "silent" } });
    const as = async (token: string) => (await send("GET", "/api/workflows", { headers: { authorization: `Bearer ${token}` } })).status;
    expect([await as("from-the-file-0123456789"), await as("from-the-options-0123456789"), await as("from-nowhere-0123456789")]).toEqual([
      200, 200, 401,
    ]);
  });
});

describe("a server that starts again", () => {
  it("removes runs that ended longer ago than the retention time", async () => {
    const { api, create, take, complete, clock } = await startAdminServer({ retention: { runs: { ageMs: 600_000 } } });
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    await complete((await take()).lease.lease_id);
    await clock.advance(590_000);
    expect((await api("GET", `/runs/${id}`)).body.state).toBe("succeeded");
    // Pruning reads real folders, and the test clock does not wait for this. It is repeated each minute.
    await eventually(async () => {
      await clock.advance(60_000);
      return (await api("GET", `/runs/${id}`)).status === 404;
    });
    expect((await api("GET", "/runs")).body.items).toEqual([]);
  });
});

describe("a server that closes", () => {
  it("ends waiting claims without a task, and held tasks stay held", async () => {
    const { server, claim, start, take, data, clock } = await startGraphServer();
    await start(job("a"));
    const { lease } = await take();
    const waiting = [claim({ worker: "w2", wait: 30 }), claim({ worker: "w3", wait: 30 })];
    await eventually(async () => (await metric(server.url, "longshore_claims_waiting")) === 2);
    const closed = server.close();
    expect(await Promise.all(waiting)).toEqual([null, null]);
    await closed;
    const again = await startGraphServer({}, { data, clock });
    expect(await again.complete(lease.lease_id)).toBe(200);
  });

  it("may be closed twice", async () => {
    const { server } = await startGraphServer();
    await Promise.all([server.close(), server.close()]);
    await server[Symbol.asyncDispose]();
  });

  it("notifies callers that wait for a result", async () => {
    const server = await startQuietly({ port: null });
    const greet = task("greet", async () => null);
    const { id } = await server.start(
      graph("w", (g) => g.step(greet, null)),
      null,
    );
    const waiting = Promise.allSettled([server.result(id), server.call(greet, null)]);
    await server.close();
    expect(await waiting).toMatchObject([{ reason: { code: "LONGSHORE_CLOSED" } }, { reason: { code: "LONGSHORE_CLOSED" } }]);
  });

  it("allows its in-process workers to be stopped afterwards", async () => {
    const server = await startQuietly({ port: null });
    const worker = await work({ tasks: [task("t", async () => null)], on: server });
    await server.close();
    await worker.stop();
    expect(worker.status().state).toBe("stopped");
  });
});

describe("a workflow with a schema of its input", () => {
  it("starts only with an input that fits", async () => {
    const server = await startQuietly({ port: null });
    const echo = task("echo", async (given: unknown) => given);
    const order = graph("order", (g, input) => g.step(echo, input), {
      input: z.object({ items: z.array(z.object({ count: z.number() })), note: z.string().default("none") }),
    });
    await expect(server.start(order, { items: [{ count: "2" as never }] })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_INPUT",
      message: expect.stringMatching(/^The input of workflow order does not fit its schema: items\[0\]\.count: /),
      detail: { field: "items[0].count" },
    });
    await expect(server.start("order", null)).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
    const worker = await work({ tasks: [echo], on: server });
    const { id } = await server.start(order, { items: [{ count: 2 }] });
    expect((await server.result(id)).output).toEqual({ items: [{ count: 2 }] });
    await worker.stop();
  });
});

describe("a workflow that runs others", () => {
  const double = task("double", async (n: number) => 2 * n);
  const inner = graph("inner", (g, n: Ref<number>) => g.step(double, n));
  const middle = graph("middle", (g, n: Ref<number>) => g.run(inner, n));

  it("has all of them defined when it starts", async () => {
    const server = await startQuietly({ port: null });
    const worker = await work({ tasks: [double], on: server });
    const outer = graph("outer", (g, n: Ref<number>) => g.run(middle, g.run(inner, n)));
    const { id } = await server.start(outer, 3);
    expect(await server.result(id)).toMatchObject({ state: "succeeded", output: 12 });
    await worker.stop();
  });

  it("finds them on the server by name, in any dialect", async () => {
    const workflows = temporaryFolder();
    writeFileSync(join(workflows, "nightly.yml"), "name: N\non: push\njobs:\n  a: { run: 'true' }\n");
    const server = await startQuietly({ port: null, workflows });
    expect(await server.define(graph("outer", (g) => g.run("nightly", null)))).toMatchObject({ name: "outer", version: 1 });
    const { id } = await server.start("outer", null);
    await server.cancel(id);
    expect((await server.result(id)).state).toBe("cancelled");
  });

  it("is refused with the step when the server does not know a name", async () => {
    const server = await startQuietly({ port: null });
    const outer = graph("outer", (g) => g.run("iner", 1, { id: "call" }));
    await expect(server.start(outer, null)).rejects.toThrow(
      "Step call of workflow outer runs the workflow iner, which is not defined. Define iner first.",
    );
    expect(await server.define(graph("again", (g, go: Ref<boolean>) => void g.run("again", false, { when: go })))).toMatchObject({
      name: "again",
    });
  });

  it("creates no new version of any of them at a second start", async () => {
    const server = await startQuietly({ port: null });
    await server.start(middle, 1);
    await server.start(middle, 2);
    expect(await Promise.all([inner, middle].map((workflow) => server.define(workflow)))).toMatchObject([{ version: 1 }, { version: 1 }]);
  });
});

describe("a server whose store cannot be written", () => {
  it("refuses new work with 503 and Retry-After, returns no task to claims, still serves reads, and resumes automatically", async () => {
    const { api, create, send, clock, post, disk, log } = await startOnSmallDisk();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    disk.full = true;
    const refused = await api("POST", "/runs", { workflow });
    expect([refused.status, refused.body.error.code]).toEqual([503, "LONGSHORE_STORE_UNAVAILABLE"]);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    const claim = await post("/api/jobs/claim", { worker_id: "w", labels: [], lease_ttl_secs: 30 });
    expect([claim.status, claim.text]).toEqual([200, "null"]);
    expect((await api("GET", `/runs/${id}`)).status).toBe(200);
    expect((await api("GET", "/health")).status).toBe(503);
    expect([(await api("GET", "/readyz")).status, (await api("GET", "/livez")).status]).toEqual([503, 200]);
    expect(log).toEqual([expect.stringMatching(/warn +Trouble with writing the data file.*database or disk is full/)]);
    expect((await send("GET", "/metrics")).text).toContain("longshore_store_writable 0");
    disk.full = false;
    await clock.advance(1_000);
    expect((await api("POST", "/runs", { workflow })).status).toBe(201);
    expect((await api("GET", "/health")).status).toBe(200);
    expect((await api("GET", "/readyz")).status).toBe(200);
    expect(log).toEqual([expect.any(String), expect.stringMatching(/warn +No more trouble with writing the data file afterMs=1000/)]);
  });
});

describe("the log of a server", () => {
  it("logs its start, when it is ready, and its end", async () => {
    const log: string[] = [];
    const server = await serve({ ephemeral: true, port: 0, logger: { level: "info", write: (line) => log.push(line) } });
    await server.close();
    expect(log).toEqual([
      expect.stringMatching(/info +The server starts version=\S+ data="in memory" pid=\d+/),
      expect.stringMatching(/info +The server is ready url=http:\/\/127/),
      expect.stringMatching(/info +The server stops$/),
      expect.stringMatching(/info +The server has stopped$/),
    ]);
  });
});

async function metric(url: string | null, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}
