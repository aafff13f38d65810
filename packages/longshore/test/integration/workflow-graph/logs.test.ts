// Logs: stored once, separated by attempt and run, and followed live.

import { describe, expect, it } from "vitest";
import type { LogChunk } from "../../../src/protocols/workflow-graph/wire/shapes.ts";
import { EventReader } from "../../support/event-reader.ts";
import { type GraphServer, job, startGraphServer } from "../../support/workflow-graph.ts";

/** A running job `a` and ways to write its log. */
async function running(more: Parameters<typeof job>[1] = {}) {
  const graph = await startGraphServer();
  const id = await graph.start(job("a", more), job("b", { depends_on: ["a"] }));
  const { lease } = await graph.take();
  const chunk = (sequence: number, data: string, rest: Partial<LogChunk> = {}) => ({
    workflow_id: id,
    job_id: "a",
    sequence,
    data,
    ...rest,
  });
  return { ...graph, id, lease: lease.lease_id, chunk };
}

const texts = async (graph: Pick<GraphServer, "logs">, id: string, jobId = "a") => (await graph.logs(id, jobId)).map(({ data }) => data);

describe("pushed logs", () => {
  it("[G46] are stored once when the same batch arrives again; equal lines with a new sequence are kept", async () => {
    const { push, lease, chunk, id, logs } = await running();
    const batch = [chunk(0, "same\n"), chunk(1, "same\n")];
    expect([await push(lease, ...batch), await push(lease, ...batch)]).toEqual([200, 200]);
    expect(await push(lease, chunk(2, "same\n"))).toBe(200);
    expect((await logs(id, "a")).map(({ sequence, data }) => [sequence, data])).toEqual([
      [0, "same\n"],
      [1, "same\n"],
      [2, "same\n"],
    ]);
  });

  it("[W-PY-05, G47] of a worker without sequence numbers are all kept in the order of arrival, also empty ones", async () => {
    const graph = await running();
    for (const data of ["one", "", "two", "three"]) expect(await graph.push(graph.lease, graph.chunk(0, data))).toBe(200);
    expect(await texts(graph, graph.id)).toEqual(["one", "", "two", "three"]);
  });

  it("[G48] are refused for a lease that never existed, and accepted for one that just ended", async () => {
    const graph = await running();
    const { push, lease, chunk, complete, clock, id } = graph;
    expect(await push("no-such-lease", chunk(0, "x"))).toBe(409);
    expect(await push(`${lease}9`, chunk(0, "x"))).toBe(409);
    expect(await push(lease.replace(/\d+$/, "2"), chunk(0, "x"))).toBe(409);
    await complete(lease);
    await clock.advance(60_000);
    expect(await push(lease, chunk(0, "late"))).toBe(200);
    await clock.advance(1);
    expect(await push(lease, chunk(1, "too late"))).toBe(409);
    expect(await texts(graph, id)).toEqual(["late"]);
  });

  it("[G48] must name the job that the lease is for", async () => {
    const { post, lease, chunk, id, logs } = await running();
    const push = (more: Partial<LogChunk>) =>
      post(`/api/jobs/${lease}/logs`, { chunks: [{ timestamp_ms: 1, stream: "stdout", ...chunk(0, "x", more) }] });
    const job = await push({ job_id: "b" });
    expect(job.status).toBe(422);
    expect(job.text).toContain('chunks[0].job_id: this lease is for job "a", not "b"');
    expect((await push({ workflow_id: "other" })).status).toBe(422);
    expect(await logs(id, "a")).toEqual([]);
    expect(await logs(id, "b")).toEqual([]);
  });

  it("[W-LOG-02] are returned with every field of the wire", async () => {
    const { push, lease, chunk, id, logs, workflow } = await running();
    await push(lease, chunk(7, "Compiling\n", { timestamp_ms: 1_710_000_001_000, stream: "stderr" }));
    expect(await logs(id, "a")).toEqual([
      {
        ...{ workflow_id: id, job_id: "a", sequence: 7, data: "Compiling\n", timestamp_ms: 1_710_000_001_000, stream: "stderr" },
        ...{ attempt: 0, run_id: expect.any(String) },
      },
    ]);
    expect((await workflow(id)).jobs[0]?.status).toBe("running");
  });

  it("[G49] distinguish attempts, and a run's log is not mixed with that of the run before", async () => {
    const graph = await running({ max_retries: 1 });
    const { push, lease, chunk, fail, take, complete, post, id, logs } = graph;
    await push(lease, chunk(0, "first try"));
    await fail(lease, true);
    const second = await take();
    await push(second.lease.lease_id, chunk(0, "second try"));
    expect((await logs(id, "a")).map(({ attempt, data }) => [attempt, data])).toEqual([
      [0, "first try"],
      [1, "second try"],
    ]);
    await complete(second.lease.lease_id);
    await complete((await take()).lease.lease_id);
    await post(`/api/workflows/${id}/run`);
    const again = await take();
    await push(again.lease.lease_id, { ...chunk(0, "next run"), workflow_id: again.job.workflow_id });
    expect(await texts(graph, id)).toEqual(["next run"]);
    expect(await texts(graph, second.job.run_id ?? "")).toEqual(["first try", "second try"]);
  });

  it("are an empty list for unknown workflows and jobs", async () => {
    const { get, id } = await running();
    expect((await get("/api/workflows/nothing/jobs/a/logs")).text).toBe("[]");
    expect((await get(`/api/workflows/${id}/jobs/nothing/logs`)).text).toBe("[]");
  });
});

describe("the log stream", () => {
  const streamOf = ({ url, id }: { url: string; id: string }, headers?: Record<string, string>, jobId = "a") =>
    EventReader.open(`${url}/api/workflows/${id}/jobs/${jobId}/logs/stream`, headers);

  it("[G16, G50] sends stored lines, then new ones, each as a chunk with an id, and ends when the job ends", async () => {
    const graph = await running();
    await graph.push(graph.lease, graph.chunk(0, "a\nb"), graph.chunk(1, "stored"));
    const reader = await streamOf(graph);
    expect(reader.response.headers).toMatchObject({ "content-type": "text/event-stream", "cache-control": "no-cache" });
    const first = await reader.next();
    expect(first?.event).toBe("log");
    expect(JSON.parse(first?.data ?? "")).toEqual({
      ...{ workflow_id: graph.id, job_id: "a", sequence: 0, data: "a\nb", timestamp_ms: 1, stream: "stdout" },
      ...{ attempt: 0, run_id: expect.any(String) },
    });
    expect(JSON.parse((await reader.next())?.data ?? "").data).toBe("stored");
    await graph.push(graph.lease, graph.chunk(2, "live"));
    const live = await reader.next();
    expect(JSON.parse(live?.data ?? "").data).toBe("live");
    expect(Number(live?.id)).toBeGreaterThan(Number(first?.id));
    await graph.complete(graph.lease);
    expect(await reader.rest()).toEqual([{ event: "end", id: undefined, data: "{}" }]);
  });

  it("[G50] has no gap between replay and live while the job is writing", async () => {
    const graph = await running();
    const total = 600;
    const seen: number[][] = [];
    const readers: Promise<void>[] = [];
    const follow = async () => {
      const frames = await (await streamOf(graph)).rest();
      seen.push(frames.filter(({ event }) => event === "log").map(({ data }) => JSON.parse(data).sequence));
    };
    for (let sequence = 0; sequence < total; sequence++) {
      await graph.push(graph.lease, graph.chunk(sequence, "x"));
      if (sequence % 100 === 0) readers.push(follow());
    }
    await graph.complete(graph.lease);
    await Promise.all(readers);
    expect(seen).toEqual(Array(6).fill(Array.from({ length: total }, (_, at) => at)));
  });

  it("[G50] continues after the last event that a reader has seen", async () => {
    const graph = await running();
    await graph.push(graph.lease, graph.chunk(0, "one"), graph.chunk(1, "two"), graph.chunk(2, "three"));
    const first = await streamOf(graph);
    await first.next();
    const second = await first.next();
    first.close();
    const resumed = await streamOf(graph, { "last-event-id": second?.id ?? "" });
    expect(JSON.parse((await resumed.next())?.data ?? "").data).toBe("three");
    await graph.complete(graph.lease);
    expect((await resumed.rest()).map(({ event }) => event)).toEqual(["end"]);
  });

  it("[G50] is kept alive by comments while nothing happens", async () => {
    const graph = await running();
    const reader = await streamOf(graph);
    await graph.clock.armed(15_000);
    await graph.clock.advance(15_000);
    expect(await reader.comment()).toBe(":");
  });

  it("[G50] notifies a reader that fell behind, and still sends it everything", async () => {
    const graph = await running();
    const reader = await streamOf(graph);
    reader.pause();
    const big = "x".repeat(3_500);
    const total = 4_000;
    for (let from = 0; from < total; from += 400) {
      await graph.push(graph.lease, ...Array.from({ length: 400 }, (_, at) => graph.chunk(from + at, big)));
    }
    await graph.complete(graph.lease);
    reader.resume();
    const frames = await reader.rest();
    const control = frames.filter(({ event }) => event !== "log");
    expect(control.map(({ event, id }) => [event, id])).toEqual([
      ["lagged", undefined],
      ["end", undefined],
    ]);
    const sequences = frames.filter(({ event }) => event === "log").map(({ data }) => JSON.parse(data).sequence as number);
    expect(sequences).toEqual(Array.from({ length: total }, (_, at) => at));
  });

  it("waits for the first run of a workflow, and ends for a job that its run never reached", async () => {
    const graph = await startGraphServer();
    const id = await graph.create(job("a"), job("b", { depends_on: ["a"] }));
    const a = await streamOf({ url: graph.url, id });
    const b = await streamOf({ url: graph.url, id }, {}, "b");
    await graph.post(`/api/workflows/${id}/run`);
    const { lease } = await graph.take();
    await graph.push(lease.lease_id, { workflow_id: id, job_id: "a", data: "hello" });
    expect(JSON.parse((await a.next())?.data ?? "").data).toBe("hello");
    await graph.post(`/api/workflows/${id}/cancel`);
    await graph.fail(lease.lease_id);
    expect((await a.rest()).map(({ event }) => event)).toEqual(["end"]);
    expect((await b.rest()).map(({ event }) => event)).toEqual(["end"]);
  });

  it("is 404 for a workflow or a job that does not exist", async () => {
    const { get, id } = await running();
    expect((await get("/api/workflows/nothing/jobs/a/logs/stream")).status).toBe(404);
    expect((await get(`/api/workflows/${id}/jobs/nothing/logs/stream`)).status).toBe(404);
  });
});
