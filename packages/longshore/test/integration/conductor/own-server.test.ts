// Our worker on our server: both halves of the protocol with real sockets and a real store.

import { describe, expect, it } from "vitest";
import { TerminalError } from "../../../src/core/errors.ts";
import { task } from "../../../src/core/task.ts";
import { conductor, conductorTask, inProgress } from "../../../src/protocols/conductor/worker/index.ts";
import { serve } from "../../../src/server/index.ts";
import { work } from "../../../src/work.ts";
import { deferred } from "../../support/until.ts";

async function setup() {
  const server = await serve({ ephemeral: true, port: 0 });
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${server.url}/api${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return response.headers.get("content-type")?.includes("json") ? JSON.parse(text) : text;
  };
  const run = async (name: string, input: object): Promise<{ status: string; output: unknown; tasks: { status: string }[] }> => {
    const id = (await call("POST", `/workflow/${name}`, input)) as string;
    for (;;) {
      const found = (await call("GET", `/workflow/${id}`)) as { status: string; output: unknown; tasks: { status: string }[] };
      if (found.status !== "RUNNING") return found;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const define = async (name: string, tasks: string[], definition: object = {}) => {
    await call(
      "POST",
      "/metadata/taskdefs",
      tasks.map((each) => ({ name: each, retryCount: 1, retryDelaySeconds: 0, ...definition })),
    );
    await call("POST", "/metadata/workflow", {
      name,
      version: 1,
      schemaVersion: 2,
      tasks: tasks.map((each, at) => ({
        name: each,
        taskReferenceName: each,
        type: "SIMPLE",
        inputParameters: { n: at === 0 ? "${workflow.input.n}" : `\${${tasks[at - 1]}.output.n}` },
      })),
      outputParameters: { n: `\${${tasks.at(-1)}.output.n}` },
    });
  };
  return { url: server.url as string, define, run, [Symbol.asyncDispose]: () => server.close() };
}

describe("our worker on our server", () => {
  it.each([true, false])("runs several chains of tasks at the same time, with update-v2 %s", async (updateV2) => {
    await using s = await setup();
    await s.define("sum", ["one", "two"]);
    const add = (name: string) => task(name, ({ n }: { n: number }) => ({ n: n + 1 }));
    await using _worker = await work({
      tasks: [add("one"), add("two")],
      on: conductor(s.url, { env: {}, outbox: false, updateV2, concurrency: 5 }),
      signals: false,
      logger: false,
    });
    const ended = await Promise.all(Array.from({ length: 20 }, (_, n) => s.run("sum", { n })));
    expect(ended.map(({ status, output }) => [status, output])).toEqual(Array.from({ length: 20 }, (_, n) => ["COMPLETED", { n: n + 2 }]));
  });

  it("fails, retries, gives up and defers", async () => {
    await using s = await setup();
    await s.define("flaky", ["fails"]);
    await s.define("hopeless", ["terminal"]);
    await s.define("patient", ["later"]);
    const tasks = [
      task("fails", ({ n }: { n: number }) => {
        if (conductorTask().retryCount === 0) throw new Error("not yet");
        return { n };
      }),
      task("terminal", () => {
        throw new TerminalError("never");
      }),
      task("later", ({ n }: { n: number }) => (conductorTask().pollCount === 1 ? inProgress({ page: 1 }, 0) : { n })),
    ];
    await using _worker = await work({ tasks, on: conductor(s.url, { env: {}, outbox: false }), signals: false, logger: false });
    const [flaky, hopeless, patient] = await Promise.all([
      s.run("flaky", { n: 1 }),
      s.run("hopeless", { n: 1 }),
      s.run("patient", { n: 7 }),
    ]);
    expect(flaky.tasks.map(({ status }) => status)).toEqual(["FAILED", "COMPLETED"]);
    expect(hopeless).toMatchObject({ status: "FAILED", tasks: [{ status: "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion: "never" }] });
    expect(patient).toMatchObject({ status: "COMPLETED", output: { n: 7 } });
  });

  it("stops at once although its polls wait at the server", async () => {
    await using s = await setup();
    let polls = 0;
    const secondPoll = deferred<void>();
    const worker = await work({
      tasks: [task("idle", () => null)],
      on: conductor(s.url, { env: {}, outbox: false }),
      // The listener is set from the beginning, because the first poll has often begun when work() returns. The second poll waits for
      // seconds.
      listeners: [{ pollStarted: () => (++polls === 2 ? secondPoll.resolve() : undefined) }],
      signals: false,
      logger: false,
    });
    await secondPoll.promise;
    await worker.stop();
    expect(worker.status().state).toBe("stopped");
  });
});
