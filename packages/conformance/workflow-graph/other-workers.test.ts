// Small workers in other languages, which use the protocol in other ways, on our server.
import { describe, it } from "vitest";
import { startOurServer } from "../src/longshore.ts";
import { openRecordingProxy } from "../src/recording-proxy.ts";
import { openStage } from "../src/stage.ts";
import { countExecutions } from "./executions.ts";
import { job, operatorOf } from "./operator.ts";
import { blockingNode, carelessGo, impatientPython, type PlainWorker, plainPython } from "./plain-workers.ts";
import { startReferenceWorker } from "./reference.ts";

describe("small workers in other languages on our server", () => {
  it.concurrent("[W-PY-09] the lease of 60 seconds that the blocking Node worker requested lasts without a heartbeat", async (context) => {
    const stage = openStage(context);
    const { url } = await startOurServer(stage);
    const proxy = await openRecordingProxy(stage, url);
    const tries = countExecutions(stage);
    // One of the two workers takes the job. The other would take it again if the lease were only 30 seconds long.
    blockingNode(stage, proxy.url);
    blockingNode(stage, proxy.url);
    const operator = operatorOf(url);
    const id = await operator.run(job("long", `${tries.mark}; sleep 36; echo done`, { required_labels: ["node"] }));
    context.expect(await operator.finished(id)).toEqual({ long: "success" });
    context.expect(tries.count()).toBe(1);
    const statuses = proxy.exchanges.filter(({ request }) => request.path.endsWith("/complete")).map(({ answer }) => answer.status);
    context.expect(statuses).toEqual([200]);
  });

  it.concurrent("[W-PY-09] the careless Go worker's heartbeat, which has a JSON content type but no body, renews its lease", async (context) => {
    const stage = openStage(context);
    const { url } = await startOurServer(stage);
    const proxy = await openRecordingProxy(stage, url);
    carelessGo(stage, proxy.url);
    const operator = operatorOf(url);
    const id = await operator.run(job("long", "sleep 11"), job("bad", "echo no; exit 1", { max_retries: 1 }));
    context.expect(await operator.finished(id)).toEqual({ long: "success", bad: "failure" });
    const beats = proxy.exchanges.filter(({ request }) => request.path.endsWith("/heartbeat"));
    context
      .expect(beats.map(({ request, answer }) => [request.headers["content-type"], request.body, answer.status]))
      .toEqual([["application/json", "", 200]]);
    context.expect(await operator.job(id, "bad")).toMatchObject({ attempt: 1, output: "no\n" });
  });

  it.concurrent("[W-PY-09] when a worker dies because of its own time limit, another worker gets the job after the lease", async (context) => {
    const stage = openStage(context);
    const { url } = await startOurServer(stage);
    const tries = countExecutions(stage);
    const impatient = impatientPython(stage, url, { PATIENCE_SECONDS: "2", LEASE_SECONDS: "4" });
    const operator = operatorOf(url);
    const id = await operator.run(job("slow", `${tries.mark}; if ${tries.from(2)}; then true; else sleep 600; fi`));
    context.expect(await impatient.ended).toBe("code 1");
    context.expect(impatient.output()).toContain("TimeoutExpired");
    plainPython(stage, url);
    context.expect(await operator.finished(id)).toEqual({ slow: "success" });
    context.expect(tries.count()).toBe(2);
  });

  it.concurrent("[W-GEN-01] workers of four languages share one run, and no job runs twice", async (context) => {
    const stage = openStage(context);
    const { url } = await startOurServer(stage);
    const operator = operatorOf(url);
    const workers: PlainWorker[] = [plainPython, blockingNode, carelessGo, (stage, url) => startReferenceWorker(stage, url)];
    for (const worker of workers) worker(stage, url);
    const tries = countExecutions(stage);
    const names = Array.from({ length: 40 }, (_, index) => `job-${index}`);
    const id = await operator.run(
      ...names.map((name) => job(name, `${tries.mark}; sleep 0.1`)),
      job("last", "true", { depends_on: names }),
    );
    const states = await operator.finished(id);
    context.expect(new Set(Object.values(states))).toEqual(new Set(["success"]));
    context.expect(tries.count()).toBe(names.length);
  });
});
