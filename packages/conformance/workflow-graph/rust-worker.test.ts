// The real Rust worker, unchanged, on our server. Ids in brackets are the scenarios of the protocol's conformance list.
import { describe, it, type TestContext } from "vitest";
import { startOurServer } from "../src/longshore.ts";
import { type Exchange, openRecordingProxy, type RecordingProxy } from "../src/recording-proxy.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { countExecutions } from "./executions.ts";
import { job, type Operator, operatorOf } from "./operator.ts";
import { startReferenceWorker } from "./reference.ts";

async function setup(context: TestContext): Promise<{ stage: Stage; proxy: RecordingProxy; operator: Operator }> {
  const stage = openStage(context);
  const { url } = await startOurServer(stage);
  return { stage, proxy: await openRecordingProxy(stage, url), operator: operatorOf(url) };
}

const sent = (exchanges: readonly Exchange[], ending: string): Exchange[] =>
  exchanges.filter(({ request }) => request.path.split("?")[0]?.endsWith(ending));

describe("the Rust worker on our server", () => {
  it.concurrent("[G18, G19] gets the job that its labels allow, although a job that they do not allow is older", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    startReferenceWorker(stage, proxy.url, { env: { WHO: "plain" } });
    const id = await operator.run(job("gpu", "echo by $WHO", { required_labels: ["gpu"] }), job("anywhere", "echo by $WHO"));
    await operator.reaches(id, "anywhere", "success");
    context.expect(await operator.states(id)).toEqual({ gpu: "queued", anywhere: "success" });
    startReferenceWorker(stage, proxy.url, { labels: ["cuda", "gpu"], env: { WHO: "gpu" } });
    context.expect(await operator.finished(id)).toEqual({ gpu: "success", anywhere: "success" });
    context.expect(await operator.logged(id, "gpu", "by")).toBe("by gpu\n");
  });

  it.concurrent("[G21] dependents keep their labels and their retries", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    const tries = countExecutions(stage);
    startReferenceWorker(stage, proxy.url, { env: { WHO: "plain" } });
    startReferenceWorker(stage, proxy.url, { labels: ["gpu"], env: { WHO: "gpu" } });
    const id = await operator.run(
      job("root", "true"),
      job("train", `${tries.mark}; echo by $WHO; ${tries.from(3)}`, { depends_on: ["root"], required_labels: ["gpu"], max_retries: 2 }),
    );
    context.expect(await operator.finished(id)).toEqual({ root: "success", train: "success" });
    context.expect(tries.count()).toBe(3);
    context.expect((await operator.logs(id, "train")).map(({ data }) => data)).toEqual(["by gpu\n", "by gpu\n", "by gpu\n"]);
  });

  it.concurrent("[G30, G33] tries a failing job as often as the job allows, and the status contains the attempt", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    const tries = countExecutions(stage);
    startReferenceWorker(stage, proxy.url);
    const id = await operator.run(
      job("doomed", `${tries.mark}; echo the reason >&2; sleep 0.2; exit 3`, { max_retries: 2 }),
      job("after", "true", { depends_on: ["doomed"] }),
      job("beside", "true"),
    );
    context.expect(await operator.finished(id)).toEqual({ doomed: "failure", after: "skipped", beside: "success" });
    context.expect(tries.count()).toBe(3);
    context.expect(await operator.job(id, "doomed")).toMatchObject({ attempt: 2, output: "exit code 3: the reason\n" });
  });

  it.concurrent("[W-CAN-01, W-CAN-02, G42] a cancelled job stays cancelled after any report of the worker", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    const tries = countExecutions(stage);
    startReferenceWorker(stage, proxy.url);
    const id = await operator.run(
      job("endless", `${tries.mark}; echo begins; sleep 600`, { max_retries: 3 }),
      job("after", "true", { depends_on: ["endless"] }),
    );
    await operator.logged(id, "endless", "begins");
    await operator.cancel(id);
    // The worker polls, kills its shell and reports a failure that allows a retry.
    const [report] = await until("the report", () =>
      sent(proxy.exchanges, "/fail").length > 0 ? sent(proxy.exchanges, "/fail") : undefined,
    );
    context.expect(JSON.parse(report?.request.body ?? "")).toEqual({ error: "cancelled", retryable: true });
    context.expect(report?.answer.status).toBe(200);
    context.expect(sent(proxy.exchanges, "/cancelled").at(-1)?.answer.body).toBe("true");
    // The same worker does another run. If the cancelled job were handed out a second time, the worker would get it before this run.
    const other = await operator.run(job("other", "true"));
    await operator.finished(other);
    context.expect(await operator.states(id)).toEqual({ endless: "cancelled", after: "cancelled" });
    context.expect(tries.count()).toBe(1);
  });

  it.concurrent("[G44] a run after a cancel is independent of the cancelled run", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    const tries = countExecutions(stage);
    startReferenceWorker(stage, proxy.url);
    // During the second execution the worker polls for cancellation. If the old cancel still applied, the poll would return true.
    const id = await operator.run(job("work", `${tries.mark}; echo begins; if ${tries.from(2)}; then sleep 3; else sleep 600; fi`));
    await operator.logged(id, "work", "begins");
    await operator.cancel(id);
    await until("the report", () => (sent(proxy.exchanges, "/fail").length > 0 ? true : undefined));
    await operator.rerun(id);
    await operator.reaches(id, "work", "success");
    context.expect(tries.count()).toBe(2);
  });

  it.concurrent("[W-LEASE-02, W-LEASE-04] its heartbeats, which have no body, keep a job of 12 seconds alive", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    startReferenceWorker(stage, proxy.url);
    const id = await operator.run(job("long", "sleep 12"));
    context.expect(await operator.finished(id)).toEqual({ long: "success" });
    const beats = sent(proxy.exchanges, "/heartbeat");
    context
      .expect(beats.map(({ request, answer }) => [request.body, request.headers["content-type"], answer.status]))
      .toEqual([["", undefined, 200]]);
  });

  it.concurrent("[G29] when it is killed in the middle of a job, another worker gets the job after its lease", async (context) => {
    const { stage, proxy, operator } = await setup(context);
    const tries = countExecutions(stage);
    const first = startReferenceWorker(stage, proxy.url);
    const id = await operator.run(job("work", `${tries.mark}; echo begins; if ${tries.from(2)}; then true; else sleep 600; fi`));
    await operator.logged(id, "work", "begins");
    first.signal("SIGKILL");
    startReferenceWorker(stage, proxy.url);
    context.expect(await operator.finished(id)).toEqual({ work: "success" });
    context.expect(tries.count()).toBe(2);
  });

  it.concurrent("[G28] keeps its lease after the server was killed and started again", async (context) => {
    const stage = openStage(context);
    const first = await startOurServer(stage);
    const proxy = await openRecordingProxy(stage, first.url);
    startReferenceWorker(stage, proxy.url);
    const id = await operatorOf(first.url).run(job("long", "echo begins; sleep 12"), job("after", "true", { depends_on: ["long"] }));
    await operatorOf(first.url).logged(id, "long", "begins");

    proxy.set("held");
    first.child.signal("SIGKILL");
    await first.child.ended;
    const second = await startOurServer(stage, { data: first.data });
    proxy.forwardTo(second.url);
    proxy.set("open");

    context.expect(await operatorOf(second.url).finished(id)).toEqual({ long: "success", after: "success" });
    const reports = [...sent(proxy.exchanges, "/heartbeat"), ...sent(proxy.exchanges, "/complete")];
    context.expect(reports.map(({ answer }) => answer.status)).toEqual([200, 200, 200]);
  });
});
