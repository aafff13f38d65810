// How results reach the server: attempts, refusals, and the next task in a response.

import { describe, expect, it } from "vitest";
import { anyPoll, anyUpdate, type ConductorStub, json, refusal, updateV1, updateV2 } from "../../../../test/support/conductor-stub.ts";
import { type Setup, setup } from "../../../../test/support/conductor-worker.ts";
import { heldTask } from "../../../../test/support/reference-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";

const greet = task("greet", (input: { n?: number }) => ({ hello: input.n ?? 0 }));

/** Lets the pauses between the attempts pass, each when it has begun. The other timer in this time watches the event loop. */
async function passTries(s: Setup, pausesMs: readonly number[]): Promise<void> {
  for (const ms of pausesMs) {
    const tries = s.stub.seen(anyUpdate).length;
    await s.clock.armed(ms, 2);
    await s.clock.advance(ms - 1);
    expect(s.stub.seen(anyUpdate)).toHaveLength(tries);
    await s.clock.advance(1);
    await until(() => s.stub.seen(anyUpdate).length > tries);
  }
}

describe("an update", () => {
  it("[C-WIRE-02] by v1 is a POST of the result to /api/tasks, with its length; the response is a text", async () => {
    await using s = await setup({ tasks: [greet], wire: { updateV2: false }, before: (stub) => void stub.enqueue("greet") });
    const update = s.stub.seen(updateV1)[0] ?? (await s.stub.next(updateV1));
    expect(update.headers["content-type"]).toBe("application/json");
    expect(update.headers["content-length"]).toBe(String(Buffer.byteLength(update.text)));
    expect(update.headers["transfer-encoding"]).toBeUndefined();
    expect(update.text).toBe(
      '{"taskId":"task-1","workflowInstanceId":"wf-1","workerId":"w1","status":"COMPLETED","outputData":{"hello":0}}',
    );
  });

  const answers: readonly [string, Parameters<ConductorStub["misbehave"]>[1]][] = [
    ["401", json(401, { error: "NOPE", message: "no" })],
    ["403", { status: 403 }],
    ["404 about the task", refusal(404, "No such task found by id: task-1")],
    ["500", refusal(500, "oops")],
    ["an HTML page", { status: 502, body: "<html>bad gateway</html>", headers: { "content-type": "text/html" } }],
    ["a login page with 200", { status: 200, body: "<html>log in</html>", headers: { "content-type": "text/html" } }],
    ["a 400 that is not Conductor's", { status: 400, body: "<html>bad request</html>" }],
  ];
  it.each(answers)(
    "[C-UPD-01, C-UPD-02, C-PIT-02] that gets %s is sent four times, after pauses of 10, 20 and 30 s",
    async (_name, answer) => {
      const failed: { readonly tries: number; readonly result?: unknown }[] = [];
      await using s = await setup({
        tasks: [greet],
        before: (stub) => {
          stub.misbehave(anyUpdate, answer);
          stub.enqueue("greet", { inputData: { n: 3 } });
        },
      });
      s.worker.on("updateTryFailed", ({ tries }) => void failed.push({ tries }));
      s.worker.on("updateFailed", ({ tries, result }) => void failed.push({ tries, result }));
      await until(() => s.stub.seen(anyUpdate).length >= 1);
      await passTries(s, [10_000, 20_000, 30_000]);
      await until(() => failed.length === 5);
      expect(failed).toEqual([
        { tries: 1 },
        { tries: 2 },
        { tries: 3 },
        { tries: 4 },
        { tries: 4, result: { kind: "done", output: { hello: 3 } } },
      ]);
      expect(new Set(s.stub.seen(anyUpdate).map(({ text }) => text)).size).toBe(1);
    },
  );

  it("[C-UPD-03, C-UPD-05] that fails is repeated with the same bytes until the first success", async () => {
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(anyUpdate, { status: 503 }, 1);
        stub.enqueue("greet");
      },
    });
    await until(() => s.stub.seen(anyUpdate).length === 1);
    await passTries(s, [10_000]);
    await until(() => s.stub.results.length === 1);
    const [first, second] = s.stub.seen(anyUpdate);
    expect(second?.text).toBe(first?.text);
    await s.clock.advance(120_000);
    expect(s.stub.results).toHaveLength(1);
  });

  it("[C-UPD-04, C-ERR-01] that never succeeds is reported as an error and with the result, and the worker continues", async () => {
    const lost: unknown[] = [];
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(anyUpdate, { status: 500 }, 4);
        stub.enqueue("greet", { taskId: "first" });
      },
    });
    s.worker.on("updateFailed", ({ ids, error, result }) => void lost.push([ids.taskId, error.message, result]));
    await until(() => s.stub.seen(anyUpdate).length === 1);
    await passTries(s, [10_000, 20_000, 30_000]);
    s.stub.enqueue("greet", { taskId: "second" });
    await until(() => lost.length === 1);
    while (s.stub.results.length === 0) await s.clock.advance(1);
    expect(s.stub.results[0]?.taskId).toBe("second");
    expect(lost).toEqual([["first", expect.stringContaining("status 500"), { kind: "done", output: { hello: 0 } }]]);
    const errors = s.notices.filter(({ level }) => level === "error").map(({ message }) => message);
    expect(errors).toEqual([expect.stringMatching(/^The result of task "greet" \(first\) could not be reported in 4 tries: .*status 500/)]);
  });

  it.each([400, 413])(
    "refused with %s in Conductor's own shape is not repeated: the task fails with that reason instead",
    async (status) => {
      await using s = await setup({
        tasks: [greet],
        before: (stub) => {
          stub.misbehave(anyUpdate, refusal(status, "payload too large"), 1);
          stub.enqueue("greet");
        },
      });
      await until(() => s.stub.results.length === 1);
      expect(s.stub.results[0]).toMatchObject({
        status: "FAILED_WITH_TERMINAL_ERROR",
        reasonForIncompletion: expect.stringContaining("payload too large"),
      });
      expect(s.stub.seen(anyUpdate)).toHaveLength(2);
    },
  );

  it("ends at once when the report of the failure is also refused", async () => {
    const lost: unknown[] = [];
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(anyUpdate, refusal(400, "no"), 2);
        stub.enqueue("greet");
      },
    });
    s.worker.on("updateFailed", ({ result }) => void lost.push(result));
    await until(() => lost.length === 1);
    expect(lost).toEqual([{ kind: "done", output: { hello: 0 } }]);
    expect(s.stub.seen(anyUpdate)).toHaveLength(2);
  });

  it("[C-UPD-08] on a connection that the server has closed is sent again at once", async () => {
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(updateV1, "cut", 1);
        stub.enqueue("greet");
      },
      wire: { updateV2: false },
    });
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(updateV1)).toHaveLength(2);
  });
});

describe("update-v2", () => {
  it("[C-V2-01, C-V2-02, C-PERF-03] returns the next task, which runs at once without a poll", async () => {
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        for (let n = 1; n <= 5; n++) stub.enqueue("greet", { inputData: { n } });
      },
    });
    await until(() => s.stub.results.length === 5);
    expect(s.stub.results.map(({ outputData }) => outputData?.hello)).toEqual([1, 2, 3, 4, 5]);
    expect(s.stub.requests.slice(0, 6).map(({ path }) => path)).toEqual([
      "/api/tasks/poll/batch/greet",
      ...Array.from({ length: 5 }, () => "/api/tasks/update-v2"),
    ]);
  });

  it.each([
    ["204 without a body", { status: 204 }],
    ["200 and null", json(200, null)],
    ["200 and nothing", { status: 200, headers: { "content-type": "application/json", "content-length": "0" } }],
  ])("[C-V2-05] answered by %s is followed by polling", async (_name, answer) => {
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(updateV2, answer, 1);
        stub.enqueue("greet");
      },
    });
    await until(() => s.stub.seen(anyPoll).length === 2);
    expect(s.stub.seen(anyUpdate)).toHaveLength(1);
  });

  it("[C-V2-04] fails by the same rules as v1", async () => {
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(updateV2, refusal(500, "oops"), 3);
        stub.enqueue("greet");
      },
    });
    await until(() => s.stub.seen(updateV2).length === 1);
    await passTries(s, [10_000, 20_000, 30_000]);
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(updateV1)).toEqual([]);
  });

  it.each([
    ["404 for the path", refusal(404, "No static resource api/tasks/update-v2.")],
    ["405", refusal(405, "Request method 'POST' is not supported")],
    ["404 by a proxy", { status: 404, body: "<html>not found</html>" }],
  ])("[C-V2-06] that the server has not (%s) is replaced by v1 at once, and tried again after an hour", async (_name, answer) => {
    await using s = await setup({ tasks: [greet], before: (stub) => void stub.misbehave(updateV2, answer) });
    for (let n = 1; n <= 3; n++) {
      s.stub.enqueue("greet");
      while (s.stub.results.length < n) await s.clock.advance(10);
    }
    expect(s.stub.seen(updateV2)).toHaveLength(1);
    expect(s.stub.seen(updateV1)).toHaveLength(3);
    s.clock.jump(3_600_000);
    s.stub.enqueue("greet");
    while (s.stub.results.length < 4) await s.clock.advance(10);
    expect(s.stub.seen(updateV2)).toHaveLength(2);
  });

  it("is not switched off by a stale task id", async () => {
    await using s = await setup({ tasks: [greet], before: (stub) => void stub.enqueue("greet") });
    await until(() => s.stub.results.length === 1);
    s.stub.misbehave(updateV2, refusal(404, "No such workflow found by id: wf-2"), 1);
    s.stub.enqueue("greet");
    while (s.stub.seen(updateV2).length < 2) await s.clock.advance(1);
    await passTries(s, [10_000]);
    await until(() => s.stub.results.length === 2);
    expect(s.stub.seen(updateV1)).toEqual([]);
  });

  it("whose response is incomplete is followed by v1 at once, so that the server certainly has the result", async () => {
    const half = { status: 200, body: '{"taskId":"task-2","workfl', headers: { "content-type": "application/json" } };
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(updateV2, half, 1);
        stub.enqueue("greet");
      },
    });
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(anyUpdate).map(({ path }) => path)).toEqual(["/api/tasks/update-v2", "/api/tasks"]);
  });

  it("is not switched off by a proxy that answers every path with 404", async () => {
    const page = { status: 404, body: "<html>not here</html>" };
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(anyUpdate, page, 2);
        stub.enqueue("greet");
      },
    });
    await until(() => s.stub.seen(anyUpdate).length === 2);
    await s.clock.armed(10_000, 2);
    await s.clock.advance(10_000);
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(updateV2)).toHaveLength(2);
  });

  it("[C-V2-07] that the server does not have causes no wait: a poll follows each v1 update at once", async () => {
    await using s = await setup({
      tasks: [greet],
      stub: { v2: false },
      before: (stub) => {
        for (let n = 1; n <= 4; n++) stub.enqueue("greet", { inputData: { n } });
      },
    });
    // The clock does not move, so there was no wait.
    await until(() => s.stub.results.length === 4);
    expect(s.stub.seen(anyPoll)[1]?.query).toContain("count=1&");
  });

  it("[C-V2-03] is not used for an IN_PROGRESS result, which ends the chain", async () => {
    await using s = await setup({
      tasks: [task("greet", (_input: unknown, ctx) => ctx.defer("5s"))],
      before: (stub) => void stub.enqueue("greet"),
    });
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(updateV2)).toEqual([]);
  });

  it("[C-V2-08] starts the heartbeats of the task that it returns", async () => {
    const held = heldTask("greet");
    let calls = 0;
    const both = task("greet", (input: unknown, ctx) => (++calls === 1 ? { first: true } : held.task.handle(input, ctx)));
    await using s = await setup({
      tasks: [both],
      before: (stub) => {
        stub.enqueue("greet", { responseTimeoutSeconds: 10 });
        stub.enqueue("greet", { responseTimeoutSeconds: 10, taskId: "chained" });
      },
    });
    await held.started;
    await s.clock.armed(8_000, 2);
    await s.clock.advance(8_000);
    await until(() => s.stub.heartbeats.length === 1);
    expect(s.stub.heartbeats[0]?.body).toMatchObject({ taskId: "chained" });
    held.resolve({});
    await until(() => s.stub.results.length === 2);
  });

  it("[C-V2-10] carries the worker's id, by which the server polls for it", async () => {
    await using s = await setup({ tasks: [greet], before: (stub) => void stub.enqueue("greet") });
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(updateV2)[0]?.body).toMatchObject({ workerId: "w1" });
  });
});
