import { readFileSync } from "node:fs";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { Message, Rpc } from "../../../net/protobuf/protobuf.ts";
import * as api from "./api-messages.ts";
import * as messages from "./messages.ts";
import * as services from "./services.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const unhex = (text: string): Uint8Array => Buffer.from(text, "hex");

/** Bytes that the reference's own schema made, with their values. */
const golden: [name: string, message: Message<object, object>, value: object, bytes: string][] = [
  ["PullTasksRequest", messages.PullTasksRequest, { queueName: "python", workerId: "w1" }, "0a06707974686f6e12027731"],
  [
    "TaskAssignment to execute",
    messages.TaskAssignment,
    {
      taskId: "t1",
      execute: {
        componentId: "echo",
        input: { message: "hi", n: 42 },
        attempt: 1,
        observability: { runId: "r1", stepId: "s1" },
        pathParams: { path: "a/b" },
      },
      context: { orchestratorServiceUrl: "127.0.0.1:7837", rootRunId: "r1" },
      heartbeatIntervalSecs: 1,
    },
    "0a02743112440a046563686f12232a210a0f0a076d65737361676512041a0268690a0e0a016e1209110000000000004540180122081a0272312a0273312a0b0a04706174681203612f6222140a0e3132372e302e302e313a37383337120272312801",
  ],
  [
    "TaskAssignment to list components",
    messages.TaskAssignment,
    {
      taskId: "discovery-0",
      listComponents: {},
      context: { orchestratorServiceUrl: "127.0.0.1:7837", rootRunId: "" },
      heartbeatIntervalSecs: 0,
    },
    "0a0b646973636f766572792d301a0022100a0e3132372e302e302e313a37383337",
  ],
  ["TaskHeartbeatRequest", messages.TaskHeartbeatRequest, { taskId: "t1", workerId: "w1", runId: "r1" }, "0a027431120277312a027231"],
  [
    "CompleteTaskRequest with an output",
    messages.CompleteTaskRequest,
    { taskId: "t1", response: { output: { ok: true } }, runId: "r1" },
    "0a027431120e0a0c2a0a0a080a026f6b1202200122027231",
  ],
  [
    "CompleteTaskRequest with an error",
    messages.CompleteTaskRequest,
    {
      taskId: "t1",
      error: { code: messages.TaskErrorCode.COMPONENT_FAILED, message: "boom", data: { exception_type: "ValueError" } },
      runId: "r1",
    },
    "0a0274311a2a08031204626f6f6d1a200a1e0a0e657863657074696f6e5f74797065120c1a0a56616c75654572726f7222027231",
  ],
  [
    "CompleteTaskRequest with components",
    messages.CompleteTaskRequest,
    {
      taskId: "discovery-0",
      listComponents: { components: [{ componentId: "echo", description: "d", inputSchema: '{"type":"object"}', path: "/echo" }] },
    },
    "0a0b646973636f766572792d302a250a230a046563686f1201641a117b2274797065223a226f626a656374227d2a052f6563686f",
  ],
];

describe("the reference's bytes", () => {
  for (const [name, message, value, bytes] of golden) {
    it(`[S-QUEUE-20] ${name} is written and read as the reference does`, () => {
      expect(hex(message.encode(value))).toBe(bytes);
      expect(message.decode(unhex(bytes))).toEqual(value);
    });
  }
});

/** A recorded message in the form of our tables: the names of 0.13, enums as numbers, and times in milliseconds. */
interface Recorded {
  session: string;
  method: string;
  direction: "request" | "response";
  message: object;
  hex: string;
}

const recorded = JSON.parse(
  readFileSync(new URL("../../../../test/fixtures/stepflow/messages.json", import.meta.url), "utf8"),
) as readonly Recorded[];
const methods = new Map(
  Object.values(services).flatMap((methods) => Object.values(methods as Record<string, Rpc>).map((rpc) => [rpc.path, rpc])),
);

describe("messages recorded between reference workers and orchestrators", () => {
  for (const [index, { session, method, direction, message, hex: bytes }] of recorded.entries()) {
    it(`${session}, ${index}: the ${direction} of ${method} is what was recorded`, () => {
      const rpc = methods.get(method);
      const codec = rpc?.[direction] as Message<object, object>;
      expect(codec.decode(unhex(bytes))).toEqual(codec.decode(codec.encode(message)));
      // Entries of a map may have any order, and times are exact to the millisecond. Everything else is as the reference wrote it.
      if (!("createdAt" in message)) expect(codec.encode(message).length).toBe(bytes.length / 2);
    });
  }
});

describe("the tables", () => {
  it("[S-QUEUE-20] every method of the schema is there", () => {
    expect([...methods.keys()].sort()).toMatchInlineSnapshot(`
      [
        "/stepflow.v1.BlobService/GetBlob",
        "/stepflow.v1.BlobService/PutBlob",
        "/stepflow.v1.ComponentsService/ListRegisteredComponents",
        "/stepflow.v1.FlowsService/DeleteFlow",
        "/stepflow.v1.FlowsService/GetFlow",
        "/stepflow.v1.FlowsService/GetFlowVariables",
        "/stepflow.v1.FlowsService/StoreFlow",
        "/stepflow.v1.HealthService/HealthCheck",
        "/stepflow.v1.OrchestratorService/CompleteTask",
        "/stepflow.v1.OrchestratorService/GetRun",
        "/stepflow.v1.OrchestratorService/SubmitRun",
        "/stepflow.v1.OrchestratorService/TaskHeartbeat",
        "/stepflow.v1.RunsService/CancelRun",
        "/stepflow.v1.RunsService/CreateRun",
        "/stepflow.v1.RunsService/DeleteRun",
        "/stepflow.v1.RunsService/GetRun",
        "/stepflow.v1.RunsService/GetRunEvents",
        "/stepflow.v1.RunsService/GetRunFlow",
        "/stepflow.v1.RunsService/GetRunItems",
        "/stepflow.v1.RunsService/GetRunSteps",
        "/stepflow.v1.RunsService/GetStepDetail",
        "/stepflow.v1.RunsService/ListRuns",
        "/stepflow.v1.TasksService/GetOrchestratorForRun",
        "/stepflow.v1.TasksService/PullTasks",
      ]
    `);
  });

  it("[S-QUEUE-20] codes of failures and the context of work have the numbers of the schema", () => {
    expect(messages.TaskErrorCode).toEqual({
      UNSPECIFIED: 0,
      TIMEOUT: 1,
      INVALID_INPUT: 2,
      COMPONENT_FAILED: 3,
      CANCELLED: 4,
      UNREACHABLE: 5,
      COMPONENT_NOT_FOUND: 6,
      RESOURCE_UNAVAILABLE: 7,
      EXPRESSION_FAILURE: 8,
      ORCHESTRATOR_ERROR: 9,
      WORKER_ERROR: 10,
    });
    const context = { traceId: "t", spanId: "s", runId: "r", flowId: "f", stepId: "p" };
    expect(hex(messages.ObservabilityContext.encode(context))).toBe("0a01741201731a01722201662a0170");
    expect(messages.ObservabilityContext.decode(unhex("0a01741201731a01722201662a0170"))).toEqual(context);
  });

  it("stream only tasks and events", () => {
    expect([...methods.values()].filter((rpc) => rpc.kind === "server-stream").map((rpc) => rpc.path)).toEqual([
      "/stepflow.v1.TasksService/PullTasks",
      "/stepflow.v1.RunsService/GetRunEvents",
    ]);
  });

  it("give every message the name of its table", () => {
    for (const table of [messages, api]) {
      for (const [name, entry] of Object.entries(table)) if ("decode" in entry) expect(entry.name).toBe(name);
    }
  });

  it("have types that show which fields may be absent", () => {
    expectTypeOf<messages.TaskAssignment["execute"]>().toEqualTypeOf<messages.ComponentExecuteRequest | undefined>();
    expectTypeOf<messages.CompleteTaskRequest["taskId"]>().toEqualTypeOf<string>();
    expectTypeOf<api.StatusEvent["stepsNeeded"]>().toEqualTypeOf<api.StepsNeededEvent | undefined>();
    expectTypeOf(services.TasksService.PullTasks.kind).toEqualTypeOf<"server-stream">();
  });
});
