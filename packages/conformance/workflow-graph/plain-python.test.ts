// What our server must support for a plain Python worker, one behaviour at a time. The worker is workers/plain.py. The ids in brackets name
// the behaviours.

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "vitest";
import { isCluster } from "../src/cluster.ts";
import { type OurServer, startOurServer } from "../src/longshore.ts";
import { type Exchange, openRecordingProxy, type RecordingProxy } from "../src/recording-proxy.ts";
import { fillDisk, mountSmallDisk } from "../src/small-disk.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { countExecutions } from "./executions.ts";
import { job, type Operator, operatorOf } from "./operator.ts";
import { plainPython } from "./plain-workers.ts";

interface Setup {
  stage: Stage;
  server: OurServer;
  proxy: RecordingProxy;
  operator: Operator;
}

async function setup(context: TestContext, data?: (stage: Stage) => string): Promise<Setup> {
  const stage = openStage(context);
  const server = await startOurServer(stage, data ? { data: data(stage) } : {});
  return { stage, server, proxy: await openRecordingProxy(stage, server.url), operator: operatorOf(server.url) };
}

const sent = (proxy: RecordingProxy, ending: string): Exchange[] => proxy.exchanges.filter(({ request }) => request.path.endsWith(ending));

const emptyClaims = (proxy: RecordingProxy): number => sent(proxy, "/claim").filter(({ answer }) => answer.body === "null").length;

/** One more empty claim shows that the worker is alive and has no job. */
async function pollsAgain(proxy: RecordingProxy): Promise<void> {
  const before = emptyClaims(proxy);
  await until("another empty claim", () => (emptyClaims(proxy) > before ? true : undefined));
}

describe("the plain Python worker on our server", () => {
  it.concurrent("[W-PY-01] continues after the server was killed and started again, without registering again", async (context) => {
    const { stage, server, proxy, operator } = await setup(context);
    plainPython(stage, proxy.url);
    const before = await operator.run(job("before", "true"));
    await operator.finished(before);
    await pollsAgain(proxy);

    proxy.set("held");
    server.child.signal("SIGKILL");
    await server.child.ended;
    const second = await startOurServer(stage, { data: server.data });
    proxy.forwardTo(second.url);
    proxy.set("open");

    const after = await operatorOf(second.url).run(job("after", "true"));
    context.expect(await operatorOf(second.url).finished(after)).toEqual({ after: "success" });
    context.expect(sent(proxy, "/register")).toHaveLength(1);
  });

  // A cluster stores its data on the disk of PostgreSQL.
  if (!isCluster())
    it.concurrent("[W-PY-02] receives null and no error while the disk is full, and continues when there is space again", async (context) => {
      let disk = "";
      const { stage, proxy, operator } = await setup(context, (stage) => {
        disk = mountSmallDisk(stage);
        mkdirSync(join(disk, "data"));
        return join(disk, "data");
      });
      const id = await operator.run(job("waiting", "true"));
      const ballast = fillDisk(disk);
      const worker = plainPython(stage, proxy.url);
      await worker.printed(/registered/);
      await pollsAgain(proxy);
      await pollsAgain(proxy);
      context.expect(await operator.states(id)).toEqual({ waiting: "queued" });

      rmSync(ballast);
      context.expect(await operator.finished(id)).toEqual({ waiting: "success" });
      const answers = sent(proxy, "/claim").map(({ answer }) => [answer.status, answer.headers["content-type"], answer.body === "null"]);
      context.expect(answers.filter(([, , empty]) => !empty)).toEqual([[200, "application/json", false]]);
      context.expect(new Set(answers.map(([status]) => status))).toEqual(new Set([200]));
    });

  it.concurrent("[W-PY-03] keeps its lease with heartbeats that have no body and no content type, the first ten seconds after the claim", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    plainPython(stage, proxy.url);
    const id = await operator.run(job("long", "sleep 11"));
    context.expect(await operator.finished(id)).toEqual({ long: "success" });
    const [beat] = sent(proxy, "/heartbeat");
    context.expect(beat?.request.headers["content-type"]).toBeUndefined();
    context.expect(beat?.request.body).toBe("");
    context.expect([beat?.answer.status, beat?.answer.body]).toEqual([200, ""]);
  });

  it.concurrent("[W-PY-04] gets 409 for a report on an expired lease, and the results of other workers stay", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    const tries = countExecutions(stage);
    // A lease of two seconds ends long before the first heartbeat. The first execution takes longer than the lease, the second does not.
    const slow = plainPython(stage, proxy.url, { LEASE_SECONDS: "2", WHO: "the slow one" });
    const id = await operator.run(
      job("work", `${tries.mark}; if ${tries.from(2)}; then true; else sleep 8; fi; echo by $WHO; test "$WHO" = "the quick one"`),
    );
    await slow.printed(/claimed work/);
    plainPython(stage, proxy.url, { WHO: "the quick one" });
    await operator.reaches(id, "work", "success");
    await slow.printed(/reported work/);

    const late = sent(proxy, "/fail");
    context.expect(late.map(({ answer }) => [answer.status, answer.body])).toEqual([[409, ""]]);
    context.expect(await operator.job(id, "work")).toMatchObject({ status: "success", output: null, attempt: 1 });
    context.expect(tries.count()).toBe(2);
  });

  it.concurrent("[W-PY-04] never polls for a cancel and finishes late, but the job stays cancelled", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    const worker = plainPython(stage, proxy.url);
    const id = await operator.run(job("work", "sleep 3"), job("after", "true", { depends_on: ["work"] }));
    await worker.printed(/claimed work/);
    await operator.cancel(id);
    await worker.printed(/reported work/);
    await pollsAgain(proxy);
    context.expect(sent(proxy, "/complete")).toHaveLength(1);
    context.expect(await operator.states(id)).toEqual({ work: "cancelled", after: "cancelled" });
  });

  it.concurrent("[W-PY-05] sends one log chunk, number 0, after the command, also when it is empty", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    plainPython(stage, proxy.url);
    const id = await operator.run(job("silent", "echo unseen >&2"), job("loud", "printf 'two\\nlines\\n'"));
    context.expect(await operator.finished(id)).toEqual({ silent: "success", loud: "success" });
    context.expect(sent(proxy, "/logs").map(({ answer }) => [answer.status, answer.body])).toEqual([
      [200, ""],
      [200, ""],
    ]);
    context.expect((await operator.logs(id, "silent")).map(({ data }) => data).join("")).toBe("");
    context.expect(await operator.logs(id, "loud")).toMatchObject([{ sequence: 0, stream: "stdout", data: "two\nlines\n" }]);
  });

  it.concurrent("[W-PY-05] uses number 0 in every attempt, and no attempt's log chunk is lost", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    const tries = countExecutions(stage);
    plainPython(stage, proxy.url);
    const id = await operator.run(job("again", `echo same words; ${tries.mark}; ${tries.from(3)}`, { max_retries: 2 }));
    context.expect(await operator.finished(id)).toEqual({ again: "success" });
    context.expect(await operator.logs(id, "again")).toMatchObject([
      { sequence: 0, data: "same words\n" },
      { sequence: 0, data: "same words\n" },
      { sequence: 0, data: "same words\n" },
    ]);
  });

  it.concurrent("[W-PY-06] fails with 4096 characters of stderr or with none, and always allows a retry", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    plainPython(stage, proxy.url);
    const id = await operator.run(
      job("wordless", "exit 1"),
      // Two bytes for each character, which would show a limit that counts bytes.
      job("wordy", "head -c 6000 /dev/zero | sed 's/\\x00/ü/g' >&2; exit 1"),
    );
    context.expect(await operator.finished(id)).toEqual({ wordless: "failure", wordy: "failure" });
    const failures = sent(proxy, "/fail").map(
      ({ request, answer }) => [JSON.parse(request.body) as { retryable: boolean }, answer.status] as const,
    );
    context.expect(failures.map(([body, status]) => [body.retryable, status])).toEqual([
      [true, 200],
      [true, 200],
    ]);
    context.expect((await operator.job(id, "wordless")).output).toBe("");
    context.expect((await operator.job(id, "wordy")).output).toBe("ü".repeat(4096));
  });

  it.concurrent("[W-PY-07, W-PY-08] sends more heartbeats after every finished job, also after the last report, and none is refused", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    plainPython(stage, proxy.url);
    const quick = await operator.run(...["a", "b", "c", "d", "e"].map((name) => job(name, "true")));
    await operator.finished(quick);
    const long = await operator.run(job("long", "sleep 11"));
    context.expect(await operator.finished(long)).toEqual({ long: "success" });

    const beats = (status: number): Exchange[] => sent(proxy, "/heartbeat").filter(({ answer }) => answer.status === status);
    // The threads of five earlier jobs and of the current job all send heartbeats for one lease.
    context.expect(beats(200)).toHaveLength(6);
    context.expect(new Set(beats(200).map(({ request }) => request.path)).size).toBe(1);
    // Each thread sends one more heartbeat, after the lease has ended, and ends when it gets the response.
    await until("the late beats", () => (beats(409).length === 6 ? true : undefined));
    context.expect(beats(409).map(({ answer }) => answer.body)).toEqual(Array(6).fill(""));
    context.expect(sent(proxy, "/heartbeat")).toHaveLength(12);
    context.expect(await operator.states(long)).toEqual({ long: "success" });
  });
});
