// The shell handler with real processes. The test controls the clock, so no test waits for real time.

import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ReferenceServer } from "../../../../test/support/reference-server.ts";
import { until } from "../../../../test/support/until.ts";
import type { Clock } from "../../../core/clock.ts";
import { TestClock } from "../../../testing/clock.ts";
import { type WorkHandle, work } from "../../../work.ts";
import type { QueuedJob } from "../wire/shapes.ts";
import { workflowGraph } from "./index.ts";

let server: ReferenceServer;
let folder: string;
let worker: WorkHandle | undefined;

beforeEach(async () => {
  server = await ReferenceServer.start();
  folder = await mkdtemp(join(tmpdir(), "longshore-test-"));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await worker?.stop({ force: true });
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

async function run(command: string, job: Partial<QueuedJob> = {}, clock: Clock = new TestClock()): Promise<void> {
  server.enqueue({ command, job_id: "j", ...job });
  const env = { FOLDER: folder, GREETING: "hello" };
  worker = await work({
    tasks: [],
    on: workflowGraph(server.url, { shell: true, env, cwd: folder }),
    slots: 1,
    signals: false,
    clock,
    logger: false,
  });
}

const completed = async () => {
  await until(() => server.completed.length + server.failed.length > 0);
  expect(server.failed).toEqual([]);
  return server.completed[0]?.body.outputs;
};
const failed = async () => {
  await until(() => server.completed.length + server.failed.length > 0);
  expect(server.completed).toEqual([]);
  return server.failed[0]?.body;
};
const logged = (stream: string) =>
  server.chunks
    .filter((chunk) => chunk.stream === stream)
    .map((chunk) => chunk.data)
    .join("");
/** Resolves when the command has written this file, which shows how far the command is. */
const written = async (name: string) => {
  await until(() => existsSync(join(folder, name)) && readFileSync(join(folder, name), "utf8").endsWith("\n"));
  return readFileSync(join(folder, name), "utf8").trim();
};
function alive(pid: string): boolean {
  try {
    process.kill(Number(pid), 0);
    // A process that has ended keeps its id until its parent has waited for it.
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

describe("shell commands", () => {
  it("[W-EXEC-01] runs the command with sh -c and reports success for exit code 0", async () => {
    await run('for word in a b; do echo "$word $GREETING"; done; pwd');
    expect(await completed()).toEqual({});
    expect(logged("stdout")).toBe(`a hello\nb hello\n${folder}\n`);
  });

  it("[G59] reports the exit code with the end of stderr, and the name of a signal", async () => {
    await run("echo fine; echo oops >&2; exit 3");
    expect(await failed()).toEqual({ error: "exit code 3: oops", retryable: true });
    expect(logged("stderr")).toBe("oops\n");
    await worker?.stop();
    server.failed.length = 0;
    await run("kill -KILL $$");
    expect(await failed()).toEqual({ error: "killed by SIGKILL", retryable: true });
  });

  it("runs in the environment of the worker, without the worker's token", async () => {
    vi.stubEnv("LONGSHORE_TOKEN", "a-secret-of-the-worker");
    vi.stubEnv("COLOUR", "red");
    await run('echo "$COLOUR <$LONGSHORE_TOKEN>"');
    await completed();
    expect(logged("stdout")).toBe("red <>\n");
  });

  it("reports the end of stdout when nothing was written to stderr", async () => {
    await run("echo all went wrong; exit 1");
    expect((await failed())?.error).toBe("exit code 1: all went wrong");
  });

  it("[G59] takes outputs from ::set-output lines and from the output file, and upstream outputs as environment and file", async () => {
    const upstream_outputs = { "build-app": { "image.tag": "v1.2", note: "two\nlines" }, empty: {} };
    await run(
      [
        'echo "::set-output tag=$WFG_BUILD_APP_IMAGE_TAG"',
        'printf "note<<END\\n%s\\nEND\\nattempt=%s\\n" "$WFG_BUILD_APP_NOTE" "$WFG_ATTEMPT" >> "$WFG_OUTPUT"',
        'echo "ids=$WFG_WORKFLOW_ID/$WFG_JOB_ID" >> "$WFG_OUTPUT"',
        'cat "$WFG_UPSTREAM"',
      ].join("\n"),
      { upstream_outputs, attempt: 1 },
    );
    expect(await completed()).toEqual({ tag: "v1.2", note: "two\nlines", attempt: "2", ids: "wf/j" });
    expect(logged("stdout")).toBe(`::set-output tag=v1.2\n${JSON.stringify(upstream_outputs)}\n`);
  });

  it("has the correct ids in its environment, for any names and outputs of earlier jobs", async () => {
    const upstream_outputs = { workflow: { id: "forged" }, job: { id: "forged" }, attempt: { "": "forged" }, output: { "": "forged" } };
    await run('echo "$WFG_WORKFLOW_ID/$WFG_JOB_ID/$WFG_ATTEMPT"; echo "ok=yes" >> "$WFG_OUTPUT"', { upstream_outputs, attempt: 1 });
    expect(await completed()).toEqual({ ok: "yes" });
    expect(logged("stdout")).toBe("wf/j/2\n");
  });

  it("fails permanently when the output file is malformed", async () => {
    await run("echo nonsense >> $WFG_OUTPUT");
    expect(await failed()).toMatchObject({ retryable: false, error: expect.stringContaining("Line 1 of $WFG_OUTPUT") });
  });

  it("passes upstream values that are too large for the environment only in the file", async () => {
    const value = "x".repeat(200_000);
    await run('test -z "$WFG_A_BIG" && wc -c < "$WFG_UPSTREAM"', { upstream_outputs: { a: { big: value } } });
    await completed();
    expect(Number(logged("stdout"))).toBeGreaterThan(200_000);
  });

  it("[G57] keeps what is written to stderr after stdout was closed, and output that is not UTF-8", async () => {
    await run("printf 'a\\377b\\n'; exec >&-; echo late >&2");
    await completed();
    expect(logged("stdout")).toBe("a\ufffdb\n");
    expect(logged("stderr")).toBe("late\n");
  });

  it("ends the whole process group on a cancel, first with SIGTERM and then with SIGKILL", async () => {
    const clock = new TestClock();
    await run(
      "trap '' TERM; (trap '' TERM; while :; do sleep 1000; done) & echo $! > $FOLDER/child; wait; while :; do sleep 1000; done",
      {},
      clock,
    );
    const child = await written("child");
    expect(alive(child)).toBe(true);
    server.cancel("wf", "j");
    const asked = server.next(/cancelled$/);
    await clock.advance(2_000);
    await asked;
    while (server.failed.length === 0) await clock.advance(100);
    expect(server.failed[0]?.body).toEqual({ error: "cancelled", retryable: false });
    await until(() => !alive(child));
  });

  it("leaves no process behind when the command ends before its children", async () => {
    await run("sleep 1000 > /dev/null 2>&1 & echo $! > $FOLDER/child; echo done");
    await completed();
    const child = await written("child");
    await until(() => !alive(child));
  });
});
