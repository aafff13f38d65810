import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type CoordinatorConfig, readCoordinatorConfig } from "./config.ts";

const read = (told?: string | CoordinatorConfig, environment: NodeJS.ProcessEnv = {}) => readCoordinatorConfig(told, environment, () => {});

function fileWith(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "coordinator.json");
  writeFileSync(file, text);
  return file;
}

describe("the coordinator's settings", () => {
  it("are the reference's by default", () => {
    expect(read()).toEqual({
      brokers: [],
      types: [],
      topics: {
        cmd: "cmd.{type}.v1",
        status: "status.{type}.v1",
        announce: "workers.announce.v1",
        query: "query.tasks.v1",
        reply: "reply.tasks.v1",
        signals: "signals.v1",
      },
      leaseMs: 45_000,
      cancelGraceMs: 30_000,
      offerMs: 10_000,
      cluster: null,
      outbox: { triesMax: 12, backoffMsMin: 250, backoffMsMax: 60_000 },
      strict: false,
      limits: {},
    });
  });

  it("are read from a file, and the environment takes precedence", () => {
    const file = fileWith(
      '{"kafka_bootstrap": "a:1, b:2", "worker_types": ["x"], "cancel_grace_sec": 0.1, "max_type_concurrency": {"slow": 1}}',
    );
    expect(read(file)).toMatchObject({ brokers: ["a:1", "b:2"], types: ["x"], cancelGraceMs: 100, limits: { types: { slow: 1 } } });
    expect(read(file, { KAFKA_BOOTSTRAP_SERVERS: "c:3", WORKER_TYPES: "y, z" })).toMatchObject({ brokers: ["c:3"], types: ["y", "z"] });
  });

  it("in the environment do not make a server without a configuration file connect to a broker", () => {
    expect(read({}, { KAFKA_BOOTSTRAP_SERVERS: "c:3" }).brokers).toEqual([]);
  });

  it("that only set how often the reference polls are reported as without effect", () => {
    const told: string[] = [];
    readCoordinatorConfig({ scheduler_tick_sec: 1 } as CoordinatorConfig, {}, (message) => told.push(message));
    expect(told).toEqual(["The FlowKit setting scheduler_tick_sec has no effect: Longshore does not poll at intervals."]);
  });

  it.each<[object, string]>([
    [{ nonsense: 1 }, "The FlowKit setting nonsense is not known."],
    [{ lease_ttl_sec: "45" }, 'The FlowKit setting lease_ttl_sec is "45", expected a number from 0.001 to 86400.'],
    [
      { topic_cmd_fmt: "cmd.v1" },
      'The FlowKit setting topic_cmd_fmt is "cmd.v1", expected a name with {type} in it, such as cmd.{type}.v1.',
    ],
    [{ worker_types: "x" }, 'The FlowKit setting worker_types is "x", expected a list of texts.'],
    [{ strict_input_adapters: "yes" }, 'The FlowKit setting strict_input_adapters is "yes", expected true or false.'],
    [{ max_global_running: 0 }, "The FlowKit setting max_global_running is 0, expected a number from 1 to 1000000."],
    [
      { max_type_concurrency: { slow: 0.5 } },
      /max_type_concurrency is \{"slow":0.5\}, expected an object of whole numbers from 1/ as never,
    ],
  ])("that are wrong are refused: %j", (told, message) => {
    expect(() => read(told as CoordinatorConfig)).toThrow(message);
  });

  it("in a file that cannot be read are refused with its name", () => {
    expect(() => read("/nowhere/c.json")).toThrow(/The FlowKit configuration \/nowhere\/c.json could not be read/);
    expect(() => read(fileWith("[]"))).toThrow(/is not an object/);
  });
});
