// Our worker on the real, unchanged server. Ids in brackets are the scenarios of the protocol's conformance list.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, it, type TestContext } from "vitest";
import type { Child } from "../src/child.ts";
import { startOurWorker } from "../src/longshore.ts";
import { openRecordingProxy } from "../src/recording-proxy.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { countExecutions } from "./executions.ts";
import { type Chunk, job, type Operator, operatorOf } from "./operator.ts";
import { startReferenceServer } from "./reference.ts";

const source = (name: string): string => fileURLToPath(new URL(`./workers/${name}`, import.meta.url));

const startHandlers = (stage: Stage, url: string, labels: string[] = []): Child =>
  startOurWorker(stage, url, { file: source("handlers.mjs"), labels });

const startProgram = (stage: Stage, url: string): Child =>
  stage.start(process.execPath, [source("program.mjs")], { name: "program.mjs", cwd: stage.folder(), env: { SERVER_URL: url } });

async function setup(context: TestContext): Promise<{ stage: Stage; url: string; operator: Operator }> {
  const stage = openStage(context);
  const { url } = await startReferenceServer(stage);
  return { stage, url, operator: operatorOf(url) };
}

const textOf = (chunks: readonly Chunk[], stream: Chunk["stream"]): string =>
  chunks
    .filter((chunk) => chunk.stream === stream)
    .map(({ data }) => data)
    .join("");

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe("our worker runs shell commands for the real server", () => {
  it.concurrent("both streams of a job's log arrive, numbered in one sequence, also bytes that are not text", async (context) => {
    const { stage, url, operator } = await setup(context);
    startOurWorker(stage, url);
    const id = await operator.run(
      job("loud", "echo one; sleep 1; echo two >&2; sleep 1; printf 'bad \\377 byte\\n'; exec >&-; echo late >&2"),
    );
    context.expect(await operator.finished(id)).toEqual({ loud: "success" });
    const chunks = await operator.logs(id, "loud");
    context.expect(textOf(chunks, "stdout")).toBe("one\nbad \ufffd byte\n");
    context.expect(textOf(chunks, "stderr")).toBe("two\nlate\n");
    context.expect(chunks.map(({ sequence }) => sequence)).toEqual(chunks.map((_, index) => index));
  });

  it.concurrent("a failing command is retried as often as the server allows, and ends with its exit code and its last output", async (context) => {
    const { stage, url, operator } = await setup(context);
    startOurWorker(stage, url);
    const tries = countExecutions(stage);
    const id = await operator.run(
      job("doomed", `${tries.mark}; echo the reason >&2; exit 3`, { max_retries: 2 }),
      job("after", "true", { depends_on: ["doomed"] }),
    );
    context.expect(await operator.finished(id)).toEqual({ doomed: "failure", after: "skipped" });
    context.expect(tries.count()).toBe(3);
    const { output } = await operator.job(id, "doomed");
    context.expect(output).toContain("exit code 3");
    context.expect(output).toContain("the reason");
  });

  it.concurrent("[G54] a cancelled command ends with all processes that it started, and is not run again", async (context) => {
    const { stage, url, operator } = await setup(context);
    startOurWorker(stage, url);
    const file = join(stage.folder(), "pids");
    const id = await operator.run(job("endless", `sleep 600 & echo $$ $! >> ${file}; echo begins; wait`, { max_retries: 5 }));
    await operator.logged(id, "endless", "begins");
    await operator.cancel(id);
    // The reference turns a report after a cancel into a failure. The report is written so that the job is not queued again.
    const { output } = await operator.reaches(id, "endless", "failure");
    context.expect(output).toBe("cancelled");
    const pids = readFileSync(file, "utf8").trim().split(/\s+/).map(Number);
    context.expect(pids).toHaveLength(2);
    await until("the command and its child to end", () => (pids.some(isAlive) ? undefined : true));
  });

  it.concurrent("outputs of a command reach the next command as environment variables", async (context) => {
    const { stage, url, operator } = await setup(context);
    startOurWorker(stage, url);
    const id = await operator.run(
      job("build", 'echo "::set-output version=1.2.3"; echo "artifact=a b" >> "$WFG_OUTPUT"'),
      job("deploy", 'echo "got $WFG_BUILD_VERSION and $WFG_BUILD_ARTIFACT"', { depends_on: ["build"] }),
    );
    context.expect(await operator.finished(id)).toEqual({ build: "success", deploy: "success" });
    context.expect(textOf(await operator.logs(id, "deploy"), "stdout")).toContain("got 1.2.3 and a b");
  });

  it.concurrent("a job with labels waits for a worker that has them", async (context) => {
    const { stage, url, operator } = await setup(context);
    startOurWorker(stage, url, { env: { WHO: "plain" } });
    const id = await operator.run(job("gpu", "echo by $WHO", { required_labels: ["gpu"] }), job("anywhere", "echo by $WHO"));
    await operator.reaches(id, "anywhere", "success");
    context.expect(await operator.states(id)).toEqual({ gpu: "queued", anywhere: "success" });
    startOurWorker(stage, url, { labels: ["linux", "gpu"], env: { WHO: "the gpu worker" } });
    context.expect(await operator.finished(id)).toEqual({ gpu: "success", anywhere: "success" });
    context.expect(textOf(await operator.logs(id, "gpu"), "stdout")).toBe("by the gpu worker\n");
  });

  it.concurrent("[G55] a result that cannot be delivered is stored, and delivered when the server is reachable again", async (context) => {
    const { stage, url, operator } = await setup(context);
    const proxy = await openRecordingProxy(stage, url);
    startOurWorker(stage, proxy.url);
    const tries = countExecutions(stage);
    const id = await operator.run(job("work", `echo begins; sleep 1; ${tries.mark}`));
    await operator.logged(id, "work", "begins");
    proxy.set("cut");
    await until("the command to end", () => (tries.count() > 0 ? true : undefined));
    context.expect(await operator.states(id)).toEqual({ work: "running" });
    proxy.set("open");
    context.expect(await operator.finished(id)).toEqual({ work: "success" });
    context.expect(tries.count()).toBe(1);
  });

  it.concurrent("[G56] after a stop signal, finishes its job, takes no other job and exits", async (context) => {
    const { stage, url, operator } = await setup(context);
    const worker = startOurWorker(stage, url);
    const id = await operator.run(job("last", "echo begins; sleep 2; echo ends"), job("next", "true", { depends_on: ["last"] }));
    await operator.logged(id, "last", "begins");
    worker.signal("SIGTERM");
    context.expect(await worker.ended).toBe("code 0");
    context.expect(await operator.states(id)).toEqual({ last: "success", next: "queued" });
  });
});

describe("our handlers on the real server", () => {
  it.concurrent("a command names its handler as JSON or as @name, and outputs are sent as texts", async (context) => {
    const { stage, url, operator } = await setup(context);
    startProgram(stage, url);
    const id = await operator.run(
      job("json", JSON.stringify({ handler: "greet", input: { name: "Ada" } })),
      job("at", '@greet {"name":"Grace"}'),
      job("report", "@report", { depends_on: ["json", "at"] }),
    );
    context.expect(await operator.finished(id)).toEqual({ json: "success", at: "success", report: "success" });
    const said: unknown = JSON.parse(await operator.logged(id, "report", "Grace"));
    context.expect(said).toEqual({ json: { text: "Hello, Ada!", letters: "3" }, at: { text: "Hello, Grace!", letters: "5" } });
  });

  it.concurrent("the worker registers its handlers as labels, so that the server's own rule finds the right worker", async (context) => {
    const { stage, url, operator } = await setup(context);
    startHandlers(stage, url, ["linux"]);
    const id = await operator.run(job("labelled", '@greet {"name":"Ada"}', { required_labels: ["handler:greet", "linux"] }));
    context.expect(await operator.finished(id)).toEqual({ labelled: "success" });
    const [worker] = await operator.workers();
    context.expect(worker?.labels).toEqual(context.expect.arrayContaining(["linux", "handler:greet", "handler:report"]));
  });

  it.concurrent("a job is retried after a plain error, but not after a terminal error", async (context) => {
    const { stage, url, operator } = await setup(context);
    startHandlers(stage, url);
    const id = await operator.run(job("flaky", "@flaky", { max_retries: 2 }), job("hopeless", "@hopeless", { max_retries: 2 }));
    context.expect(await operator.finished(id)).toEqual({ flaky: "success", hopeless: "failure" });
    context.expect(textOf(await operator.logs(id, "flaky"), "stdout")).toBe("call 1, attempt 1\ncall 2, attempt 2\ncall 3, attempt 3\n");
    context.expect((await operator.job(id, "hopeless")).output).toContain("this can never work");
  });

  it.concurrent("with the shell off, a shell command fails at once and permanently, and the error names the option", async (context) => {
    const { stage, url, operator } = await setup(context);
    const proxy = await openRecordingProxy(stage, url);
    startHandlers(stage, proxy.url);
    const id = await operator.run(job("command", "echo hello", { max_retries: 5 }));
    context.expect(await operator.finished(id)).toEqual({ command: "failure" });
    context.expect((await operator.job(id, "command")).output).toContain("--shell");
    context.expect(proxy.exchanges.filter(({ request }) => request.path.endsWith("/fail"))).toHaveLength(1);
  });

  it.concurrent("[G52, G60] after the server restarts without its data, drops the job, reports nothing, and registers again", async (context) => {
    const stage = openStage(context);
    const first = await startReferenceServer(stage);
    const proxy = await openRecordingProxy(stage, first.url);
    const worker = startHandlers(stage, proxy.url, ["linux"]);
    const id = await operatorOf(first.url).run(job("endless", "@endless"));
    await operatorOf(first.url).logged(id, "endless", "begins");

    proxy.set("held");
    first.child.signal("SIGKILL");
    const second = await startReferenceServer(stage);
    proxy.forwardTo(second.url);
    proxy.set("open");

    await worker.printed(/aborted: LONGSHORE_LEASE_LOST/);
    const operator = operatorOf(second.url);
    await until("the worker to register again", async () => ((await operator.workers()).length > 0 ? true : undefined));
    // The slot is free again: the worker does the new server's job.
    const next = await operator.run(job("greet", '@greet {"name":"Ada"}'));
    context.expect(await operator.finished(next)).toEqual({ greet: "success" });
    const reports = proxy.exchanges.filter(({ request }) => /\/(complete|fail)$/.test(request.path));
    context.expect(reports.map(({ request }) => request.path.endsWith("/complete"))).toEqual([true]);
  });
});
