import { describe, expect, it } from "vitest";
import { TestClock } from "../../../testing/clock.ts";
import { connect } from "./connect.ts";
import { logFromEnvironment, workerLog } from "./log.ts";
import { type FlowkitOptions, workerSettings } from "./options.ts";
import { ProcessedMessages } from "./processed-messages.ts";

const env = {};

describe("options", () => {
  it.each<[FlowkitOptions, string]>([
    [{ leaseTtlSec: 0 }, "leaseTtlSec is 0, expected a number of seconds up to 86400."],
    [{ hbIntervalSec: 60 }, "hbIntervalSec is 60 s, expected less than leaseTtlSec, which is 60 s."],
    [{ roles: [] }, "roles is [], expected a list of at least one role."],
    [{ roles: ["a b"] }, 'roles is "a b", expected letters, digits and . _ - (it is part of the names of topics).'],
    [{ workerId: " " }, 'workerId is " ", expected a text.'],
    [{ dedupCacheSize: 0 }, "dedupCacheSize is 0, expected a whole number from 1 to 1000000."],
    [{ dbCancelPollMs: -1 }, "dbCancelPollMs is -1, expected a whole number from 0 to 86400000."],
    [{ topicCmdFmt: "cmd" }, 'topicCmdFmt is "cmd", expected a name with "{type}" in it.'],
    [
      { adapters: [{ name: "pull.from_artifacts", check: () => ({ ok: true, args: {} }), open: async function* () {} }] },
      'Two input adapters are named "pull.from_artifacts", expected each name once.',
    ],
  ])("%j is refused by name", (options, message) => {
    expect(() => workerSettings({ ...options, env })).toThrow(message);
  });

  it("a worker without a name gets one, and the reference's default settings", () => {
    expect(workerSettings({ env })).toMatchObject({
      workerId: expect.stringMatching(/^w-[0-9a-f]{8}$/),
      idIsGiven: false,
      leaseTtlMs: 60_000,
      heartbeatMs: 20_000,
      announceMs: 60_000,
      dedupCacheSize: 10_000,
      dedupTtlMs: 3_600_000,
      cancelPollMs: 5_000,
      argDefaults: { pollMs: 300, backoffMaxMs: 4_000, strict: false },
    });
  });

  it("a shorter lease has more frequent heartbeats, a longer one the usual interval", () => {
    expect(workerSettings({ env, leaseTtlSec: 6 }).heartbeatMs).toBe(2_000);
    expect(workerSettings({ env, leaseTtlSec: 600 }).heartbeatMs).toBe(20_000);
    expect(workerSettings({ env, leaseTtlSec: 6, hbIntervalSec: 5 }).heartbeatMs).toBe(5_000);
  });

  it("cancel flags are read more often from a database without notifications than from our own store", () => {
    expect(workerSettings({ env, mongo: "mongodb://db" }).cancelPollMs).toBe(500);
    expect(workerSettings({ env, dbCancelPollMs: 50 }).cancelPollMs).toBe(50);
  });

  it.each<[FlowkitOptions, string]>([
    [{}, "brokers is absent, expected Kafka's brokers, or the url of a Longshore server."],
    [{ brokers: "kafka:9092" }, "mongo is absent, expected the address of a database, or the url of a Longshore server."],
    [{ brokers: "kafka", url: "http://h" }, 'brokers is "kafka", expected addresses such as kafka:9092.'],
    [{ url: "kafka:9092" }, 'url is "kafka:9092", expected the address of a Longshore server, such as http://127.0.0.1:4500.'],
    [{ url: "http://h", mongo: {} }, "mongo is no database, expected an address, or a Db of mongodb."],
  ])("where to work is needed: %j", (options, message) => {
    expect(() => connect({ ...options, env })).toThrow(message);
  });

  it("addresses come from the environment when the code has none, and a secret is never shown", () => {
    expect(connect({ env: { KAFKA_BOOTSTRAP_SERVERS: "a:1, b:2", FLOWKIT_MONGO_URL: "mongodb://me:secret@db/x" } }).name).toBe(
      "Kafka at a:1,b:2 and MongoDB",
    );
    expect(connect({ env: { FLOWKIT_URL: "http://me:secret@127.0.0.1:4500" } }).name).toBe("http://127.0.0.1:4500");
    expect(connect({ url: "http://127.0.0.1:1", env: { KAFKA_BOOTSTRAP_SERVERS: "a:1" } }).name).toBe("http://127.0.0.1:1");
  });
});

describe("the log", () => {
  it("is silent until the environment enables it, and then writes JSON lines of its level and above", () => {
    const lines: string[] = [];
    const write = (line: string) => void lines.push(line);
    expect(logFromEnvironment({}, write)).toBeUndefined();
    const log = workerLog(logFromEnvironment({ FLOWKIT_LOG_STDOUT: "yes", FLOWKIT_LOG_LEVEL: "INFO" }, write), new TestClock(), {
      worker_id: "w",
    });
    log("debug", "worker.send.hb");
    log("error", "worker.task.crashed", { error: new TypeError("x") });
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      {
        ts: "2020-01-01T00:00:00.000Z",
        level: "error",
        logger: "flowkit.worker",
        message: "task.crashed",
        worker_id: "w",
        event: "worker.task.crashed",
        error: { type: "TypeError", message: "x" },
      },
    ]);
  });

  it("a listener that throws does no harm", () => {
    const log = workerLog(
      () => {
        throw new Error("full");
      },
      new TestClock(),
      {},
    );
    expect(() => log("info", "worker.start")).not.toThrow();
  });
});

describe("the memory of received records", () => {
  it("is limited by number and by age", async () => {
    const clock = new TestClock();
    const seen = new ProcessedMessages(clock, 2, 1_000);
    for (const id of ["a", "b", "c"]) seen.add(id);
    expect(["a", "b", "c"].map((id) => seen.has(id))).toEqual([false, true, true]);
    await clock.advance(1_000);
    expect(seen.has("c")).toBe(false);
  });
});
