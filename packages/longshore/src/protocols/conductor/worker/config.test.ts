// Every spelling of every property, and which spelling takes precedence.

import { describe, expect, it } from "vitest";
import { setup } from "../../../../test/support/conductor-worker.ts";
import type { Environment } from "../../../core/environment.ts";
import { task } from "../../../core/task.ts";
import { work } from "../../../work.ts";
import { describeWorker, type WorkerOptions, workerConfig } from "./config.ts";
import { conductor } from "./index.ts";

function configOf(env: Environment, code: readonly WorkerOptions[] = [], name = "greet", slots?: number) {
  return workerConfig(
    task(name, () => null),
    { env, code, slots, workerId: "auto-1" },
  );
}

describe("the configuration of a worker", () => {
  it("[C-CFG-15] has the guide's defaults, except for the lease extension, which is on", () => {
    expect(configOf({})).toEqual({
      task: "greet",
      threadCount: 1,
      pollIntervalMs: 100,
      pollTimeoutMs: 100,
      longPoll: true,
      domain: undefined,
      workerId: "auto-1",
      registerTaskDef: false,
      overwriteTaskDef: true,
      registerSchema: true,
      strictSchema: false,
      paused: false,
      leaseExtend: true,
      taskDef: {},
    });
  });

  it("[C-CFG-01] comes from the worker's variable, else from the variable for all workers, else from the code, else it is the default", () => {
    const specific = { CONDUCTOR_WORKER_GREET_THREAD_COUNT: "50" };
    const all = { CONDUCTOR_WORKER_ALL_THREAD_COUNT: "20" };
    const code = [{ concurrency: 7 }, { concurrency: 5 }];
    expect(configOf({ ...specific, ...all }, code).threadCount).toBe(50);
    expect(configOf(all, code).threadCount).toBe(20);
    expect(configOf({}, code).threadCount).toBe(7);
    expect(configOf({}, [{}, { concurrency: 5 }]).threadCount).toBe(5);
    expect(configOf({}).threadCount).toBe(1);
  });

  it("uses the task's own concurrency, and the slots of work() by default", () => {
    const own = task("own", () => null, { concurrency: 4 });
    const sources = { env: {}, code: [], slots: 30, workerId: "w" };
    expect(workerConfig(own, sources).threadCount).toBe(4);
    expect(configOf({}, [], "greet", 30).threadCount).toBe(30);
    expect(workerConfig(own, { ...sources, code: [{ concurrency: 9 }] }).threadCount).toBe(9);
  });

  const inOrder = [
    "conductor.worker.greet.thread_count",
    "conductor_worker_greet_thread_count",
    "CONDUCTOR_WORKER_GREET_THREAD_COUNT",
    "CONDUCTOR_WORKER_greet_THREAD_COUNT",
    "conductor.worker.all.thread_count",
    "CONDUCTOR_WORKER_ALL_THREAD_COUNT",
    "conductor_worker_all_thread_count",
    "conductor_worker_thread_count",
    "CONDUCTOR_WORKER_THREAD_COUNT",
  ];
  it.each(inOrder)("[C-CFG-02, C-CFG-03, C-CFG-04] is read from %s", (name) => {
    expect(configOf({ [name]: "9" }).threadCount).toBe(9);
  });

  it("[C-CFG-05] prefers dotted names to upper-case names, and a worker's own variable to the variable for all", () => {
    for (let at = 0; at < inOrder.length; at++) {
      const env = Object.fromEntries(inOrder.slice(at).map((name, n) => [name, String(n + 2)]));
      expect(configOf(env).threadCount, inOrder[at]).toBe(2);
    }
  });

  it.each(["poll_interval_millis", "poll_interval", "polling_interval"])("[C-CFG-10] reads the interval from %s", (suffix) => {
    expect(configOf({ [`conductor.worker.all.${suffix}`]: "250" }).pollIntervalMs).toBe(250);
    expect(configOf({ [`CONDUCTOR_WORKER_GREET_${suffix.toUpperCase()}`]: "300.4" }).pollIntervalMs).toBe(300);
  });

  it("[C-CFG-11] accepts concurrency as another name of thread_count", () => {
    expect(configOf({ CONDUCTOR_WORKER_ALL_CONCURRENCY: "6" }).threadCount).toBe(6);
  });

  it("[C-CFG-12] registers schemas by default, for one worker or for all", () => {
    expect(configOf({ CONDUCTOR_REGISTER_SCHEMAS: "false" }).registerSchema).toBe(false);
    expect(configOf({ CONDUCTOR_REGISTER_SCHEMAS: "false", "conductor.worker.greet.register_schema": "true" }).registerSchema).toBe(true);
    expect(configOf({}, [{ registerSchema: false }]).registerSchema).toBe(false);
  });

  it("[C-CFG-13] finds names with dashes unchanged, and with underscores", () => {
    for (const name of [
      "CONDUCTOR_WORKER_SEND-MAIL_THREAD_COUNT",
      "CONDUCTOR_WORKER_SEND_MAIL_THREAD_COUNT",
      "CONDUCTOR_WORKER_send-mail_THREAD_COUNT",
      "conductor.worker.send-mail.thread_count",
    ]) {
      expect(configOf({ [name]: "3" }, [], "send-mail").threadCount, name).toBe(3);
    }
  });

  it("[C-CFG-06] reads texts, numbers and booleans", () => {
    const config = configOf({
      CONDUCTOR_WORKER_ALL_DOMAIN: "eu",
      CONDUCTOR_WORKER_ALL_WORKER_ID: "me",
      CONDUCTOR_WORKER_ALL_POLL_TIMEOUT: "900",
      CONDUCTOR_WORKER_ALL_REGISTER_TASK_DEF: "YES",
      CONDUCTOR_WORKER_ALL_OVERWRITE_TASK_DEF: "0",
      CONDUCTOR_WORKER_ALL_STRICT_SCHEMA: "1",
      CONDUCTOR_WORKER_ALL_PAUSED: "true",
      CONDUCTOR_WORKER_ALL_LEASE_EXTEND_ENABLED: "no",
    });
    expect(config).toMatchObject({
      domain: "eu",
      workerId: "me",
      pollTimeoutMs: 900,
      longPoll: false,
      registerTaskDef: true,
      overwriteTaskDef: false,
      strictSchema: true,
      paused: true,
      leaseExtend: false,
    });
  });

  it("takes an empty variable as absent, except for a domain, which it removes", () => {
    expect(configOf({ CONDUCTOR_WORKER_ALL_THREAD_COUNT: " " }, [{ concurrency: 2 }]).threadCount).toBe(2);
    expect(configOf({ CONDUCTOR_WORKER_GREET_DOMAIN: "" }, [{ domain: "eu" }]).domain).toBeUndefined();
    expect(configOf({ CONDUCTOR_WORKER_ALL_WORKER_ID: "auto" }, [{ workerId: "me" }]).workerId).toBe("auto-1");
  });

  it.each([
    ["CONDUCTOR_WORKER_ALL_PAUSED", "maybe", 'CONDUCTOR_WORKER_ALL_PAUSED is "maybe", expected one of yes, true, no, false, 1, 0.'],
    [
      "conductor.worker.greet.thread_count",
      "many",
      'conductor.worker.greet.thread_count is "many", expected a whole number from 1 to 10000.',
    ],
    ["CONDUCTOR_WORKER_THREAD_COUNT", "0", 'CONDUCTOR_WORKER_THREAD_COUNT is "0", expected a whole number from 1 to 10000.'],
    ["CONDUCTOR_WORKER_ALL_THREAD_COUNT", "2.5", "expected a whole number"],
    ["CONDUCTOR_WORKER_ALL_POLL_INTERVAL", "-1", 'CONDUCTOR_WORKER_ALL_POLL_INTERVAL is "-1", expected milliseconds from 0 to 86400000.'],
    ["CONDUCTOR_REGISTER_SCHEMAS", "perhaps", "CONDUCTOR_REGISTER_SCHEMAS"],
  ])("[C-CFG-07, C-CFG-09] stops the start when %s is %s, naming variable, value and what is accepted", async (name, value, message) => {
    const on = conductor("http://127.0.0.1:1", { env: { [name]: value }, outbox: false });
    await expect(work({ tasks: [task("greet", () => null)], on, signals: false, logger: false })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringContaining(message),
    });
  });

  it("of an unknown task, and a concurrency of zero, are refused too", async () => {
    const start = (options: object) =>
      work({
        tasks: [task("greet", () => null)],
        on: conductor("http://127.0.0.1:1", { env: {}, ...options }),
        signals: false,
        logger: false,
      });
    await expect(start({ workers: { gret: {} } })).rejects.toThrow(/options for "gret", expected one of the worker's tasks/);
    await expect(start({ concurrency: 0 })).rejects.toThrow(/concurrency of greet is 0, expected a whole number/);
  });

  it("[C-CFG-08, C-POLL-01] is printed on one line per worker at the start", async () => {
    await using s = await setup({
      tasks: [task("greet", () => null), task("other", () => null)],
      wire: { pollTimeout: 250, workers: { other: { domain: "eu", concurrency: 3, paused: true, leaseExtend: false } } },
    });
    expect(s.notices.map(({ level, message }) => `${level} ${message}`)).toEqual([
      `info Conductor Worker[name=greet, pid=${process.pid}, status=active, poll_interval=100ms, domain=none, thread_count=1, poll_timeout=250ms, lease_extend=true, register_task_def=false]`,
      `info Conductor Worker[name=other, pid=${process.pid}, status=paused, poll_interval=100ms, domain=eu, thread_count=3, poll_timeout=250ms, lease_extend=false, register_task_def=false]`,
    ]);
    expect(describeWorker(configOf({}), 1)).toContain("domain=none");
  });
});
