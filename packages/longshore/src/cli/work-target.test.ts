import { describe, expect, it } from "vitest";
import { targetOf } from "./work-target.ts";

const server = "http://127.0.0.1:4500";

/** The typed options, and the source of the address of `--on`. */
function target(flags: { on?: string; conductor?: string | true; port?: number }, env: Record<string, string> = {}, onFrom?: "env") {
  const source = flags.on === undefined ? (onFrom ?? "default") : "cli";
  return targetOf({ on: server, ...flags }, { getOptionValueSource: () => source }, env);
}

describe("a worker takes its tasks", () => {
  it("from a server of ours by default", () => {
    expect(target({})).toEqual({ protocol: "workflow-graph", on: server });
    expect(target({ on: "http://h:1" })).toEqual({ protocol: "workflow-graph", on: "http://h:1" });
  });

  it("from the typed address, also when the environment names another", () => {
    const env = { CONDUCTOR_SERVER_URL: "http://c:1", STEPFLOW_TRANSPORT: "grpc" };
    expect(target({ on: "http://h:1" }, env).protocol).toBe("workflow-graph");
    expect(target({ conductor: "http://c:2" }, env)).toEqual({ protocol: "conductor", on: "http://c:2" });
    expect(target({ conductor: true }, env)).toEqual({ protocol: "conductor", on: "http://c:1" });
    expect(target({ port: 0 }, env).protocol).toBe("stepflow-http");
  });

  it("[S-QUEUE-14] from the queue that an orchestrator's variables name, before all others", () => {
    const others = { CONDUCTOR_SERVER_URL: "http://c:1" };
    expect(target({}, { ...others, STEPFLOW_TRANSPORT: "grpc" }, "env")).toMatchObject({ protocol: "stepflow" });
    expect(target({}, { STEPFLOW_TRANSPORT: "nats" }).on).toContain("NATS");
    expect(target({}, { STEPFLOW_TASKS_URL: "127.0.0.1:7837" }).on).toContain("gRPC");
    expect(target({}, { STEPFLOW_NATS_URL: "nats://h:4222" }).on).toContain("NATS");
    expect(() => target({}, { STEPFLOW_TRANSPORT: "smoke" })).toThrow(/STEPFLOW_TRANSPORT is "smoke", expected grpc, nats or http/);
  });

  it("from the orchestrator that calls it, when the variables are set", () => {
    expect(target({}, { STEPFLOW_TRANSPORT: "http", STEPFLOW_TASKS_URL: "h:1" }).protocol).toBe("stepflow-http");
  });

  it("from Conductor when its variable is the only one", () => {
    expect(target({}, { CONDUCTOR_SERVER_URL: "http://c:1" })).toEqual({ protocol: "conductor", on: "http://c:1" });
    expect(target({}, { CONDUCTOR_SERVER_URL: "http://c:1" }, "env").protocol).toBe("workflow-graph");
    expect(target({ conductor: true })).toEqual({ protocol: "conductor", on: "http://localhost:8080" });
  });

  it("from FlowKit when the environment names a server, or brokers with their database", () => {
    expect(target({}, { FLOWKIT_URL: "http://me:secret@h:1/x" })).toEqual({ protocol: "flowkit", on: "FlowKit at http://h:1" });
    const kafka = { KAFKA_BOOTSTRAP_SERVERS: "kafka:9092" };
    expect(target({}, { ...kafka, FLOWKIT_MONGO_URL: "mongodb://db" })).toEqual({
      protocol: "flowkit",
      on: "FlowKit on Kafka at kafka:9092",
    });
    expect(target({}, kafka).protocol).toBe("workflow-graph");
    expect(target({ on: "http://h:1" }, { FLOWKIT_URL: "http://h:2" }).protocol).toBe("workflow-graph");
  });

  it("from no server when FlowKit's database is named but not its brokers", () => {
    const env = { FLOWKIT_MONGO_URL: "mongodb://me:secret@db/flowkit" };
    expect(() => target({}, env)).toThrow(/its brokers are not set. Set KAFKA_BOOTSTRAP_SERVERS too, or FLOWKIT_URL/);
    expect(() => target({}, env)).toThrow(`pass --on ${server}.`);
    expect(target({ on: "http://h:1" }, env).protocol).toBe("workflow-graph");
    expect(target({}, env, "env").protocol).toBe("workflow-graph");
    expect(target({}, { ...env, FLOWKIT_URL: "http://h:1" }).protocol).toBe("flowkit");
  });

  it("from one server only", () => {
    expect(() => target({ on: "http://h:1", conductor: true })).toThrow("--on and --conductor name two servers");
    expect(() => target({ on: "http://h:1", conductor: true, port: 1 })).toThrow("--on and --conductor name two servers");
  });
});
