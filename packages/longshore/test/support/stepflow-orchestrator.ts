// A small Stepflow orchestrator for tests of the worker half: the calls of a worker's life on a real gRPC server, with its state in memory.
// It remembers every request, decoded and as bytes, and a test may answer any call itself. It has no timer.

import type { Json } from "../../src/core/json/json.ts";
import type { GrpcCall, GrpcMethod, GrpcSink } from "../../src/net/grpc/service.ts";
import { GrpcCode, GrpcError } from "../../src/net/grpc/status.ts";
import type { Encodable, Message } from "../../src/net/protobuf/protobuf.ts";
import {
  type CompleteTaskRequest,
  type GetOrchestratorForRunRequest,
  type GetOrchestratorForRunResponse,
  type OrchestratorGetRunRequest,
  type OrchestratorRunStatus,
  type OrchestratorSubmitRunRequest,
  type PullTasksRequest,
  type PutBlobRequest,
  TaskAssignment,
  type TaskHeartbeatRequest,
  type TaskHeartbeatResponse,
  TaskStatus,
} from "../../src/protocols/stepflow/wire/messages.ts";
import { BlobService, OrchestratorService, TasksService } from "../../src/protocols/stepflow/wire/services.ts";
import { startGrpc, type TestGrpc } from "./grpc.ts";
import { until } from "./until.ts";

export interface SeenCall {
  /** A method such as `CompleteTask`. */
  readonly method: string;
  readonly request: unknown;
  readonly hex: string;
  readonly metadata: Readonly<Record<string, string>>;
}

type Beat = Partial<TaskHeartbeatResponse>;

/** The answer of a test. A thrown GrpcError is also an answer. */
export interface Answers {
  beat(request: TaskHeartbeatRequest): Beat | Promise<Beat>;
  complete(request: CompleteTaskRequest): void | Promise<void>;
  locate(request: GetOrchestratorForRunRequest): Partial<GetOrchestratorForRunResponse>;
  submitRun(request: OrchestratorSubmitRunRequest): Partial<OrchestratorRunStatus> | Promise<Partial<OrchestratorRunStatus>>;
  getRun(request: OrchestratorGetRunRequest): Partial<OrchestratorRunStatus>;
}

interface Stream {
  readonly request: PullTasksRequest;
  readonly sink: GrpcSink<Encodable<typeof TaskAssignment> | Uint8Array>;
  readonly call: GrpcCall;
}

export class StepflowOrchestrator {
  readonly calls: SeenCall[] = [];
  /** Results of tasks, also those of discovery, in the order in which they were taken. */
  readonly results: CompleteTaskRequest[] = [];
  readonly streams: Stream[] = [];
  readonly blobs = new Map<string, { readonly json?: Json; readonly bytes?: Uint8Array; readonly type: string }>();
  readonly answers: Answers = {
    beat: () => ({ status: TaskStatus.IN_PROGRESS }),
    complete: () => {},
    locate: () => {
      throw new GrpcError(GrpcCode.NOT_FOUND, "no lease");
    },
    submitRun: () => ({ runId: "r2", flowId: "f", status: 2 }),
    getRun: () => ({ runId: "r2", flowId: "f", status: 2 }),
  };
  #grpc!: TestGrpc;
  #port: number;

  private constructor(port: number) {
    this.#port = port;
  }

  /** Ends with the test. */
  static async start(port = 0): Promise<StepflowOrchestrator> {
    const orchestrator = new StepflowOrchestrator(port);
    await orchestrator.listen();
    return orchestrator;
  }

  /** Without a scheme, as orchestrators write their own addresses. */
  get url(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#grpc.sockets.size;
  }

  /** Listens again on the same port after `crash`. */
  async listen(): Promise<void> {
    this.#grpc = await startGrpc(this.#methods(), { port: this.#port });
    this.#port = this.#grpc.port;
  }

  async crash(): Promise<void> {
    this.streams.splice(0);
    await this.#grpc.crash();
  }

  of(method: string): readonly SeenCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  get beats(): readonly TaskHeartbeatRequest[] {
    return this.of("TaskHeartbeat").map(({ request }) => request as TaskHeartbeatRequest);
  }

  /** Sends to the newest stream, once there is one. Resolves when the bytes have left this process. */
  async send(assignment: Encodable<typeof TaskAssignment> | Uint8Array): Promise<void> {
    await until(() => this.streams.length > 0);
    await this.streams.at(-1)?.sink.send(assignment);
  }

  /** An assignment of this orchestrator. */
  task(taskId: string, execute: Encodable<typeof TaskAssignment>["execute"], more: Encodable<typeof TaskAssignment> = {}) {
    const observability = { runId: "r1", stepId: "s1", flowId: "f1" };
    const context = { orchestratorServiceUrl: this.url, rootRunId: "r1" };
    return { taskId, execute: { attempt: 1, observability, ...execute }, context, heartbeatIntervalSecs: 1, ...more };
  }

  discovery(taskId: string): Encodable<typeof TaskAssignment> {
    return { taskId, listComponents: {}, context: { orchestratorServiceUrl: this.url } };
  }

  async result(taskId: string): Promise<CompleteTaskRequest> {
    await until(() => this.results.some((result) => result.taskId === taskId));
    return this.results.find((result) => result.taskId === taskId) as CompleteTaskRequest;
  }

  #methods(): GrpcMethod[] {
    const { answers } = this;
    return [
      this.#stream(),
      this.#unary(TasksService.GetOrchestratorForRun, (request) => answers.locate(request as never)),
      this.#unary(OrchestratorService.TaskHeartbeat, (request) => answers.beat(request as never)),
      this.#unary(OrchestratorService.CompleteTask, async (request) => {
        await answers.complete(request as CompleteTaskRequest);
        this.results.push(request as CompleteTaskRequest);
        return {};
      }),
      this.#unary(OrchestratorService.SubmitRun, (request) => answers.submitRun(request as never)),
      this.#unary(OrchestratorService.GetRun, (request) => answers.getRun(request as never)),
      this.#unary(BlobService.PutBlob, (request) => this.#putBlob(request as PutBlobRequest)),
      this.#unary(BlobService.GetBlob, (request) => this.#getBlob((request as { blobId: string }).blobId)),
    ];
  }

  #stream(): GrpcMethod {
    const rpc = TasksService.PullTasks;
    const response = { ...passing(TaskAssignment), name: TaskAssignment.name };
    const stream = (request: unknown, call: GrpcCall, sink: GrpcSink<unknown>) => {
      this.#note(rpc.path, request, call);
      const opened = { request, sink, call } as Stream;
      this.streams.push(opened);
      return new Promise<void>((resolve) => {
        call.gone.addEventListener("abort", () => {
          const at = this.streams.indexOf(opened);
          if (at !== -1) this.streams.splice(at, 1);
          resolve();
        });
      });
    };
    return { ...rpc, action: "task.claim", request: this.#noting(rpc.request) as never, response: response as never, stream };
  }

  #unary(
    rpc: { readonly path: string; readonly request: Message; readonly response: Message },
    handle: (request: unknown) => unknown,
  ): GrpcMethod {
    const unary = (request: unknown, call: GrpcCall) => {
      this.#note(rpc.path, request, call);
      return handle(request) as never;
    };
    return { path: rpc.path, kind: "unary", action: "task.claim", request: this.#noting(rpc.request), response: rpc.response, unary };
  }

  #hex = new WeakMap<object, string>();

  /** The same message, whose bytes are remembered. */
  #noting(message: Message): Message {
    return {
      name: message.name,
      fields: message.fields,
      encode: (value) => message.encode(value),
      decode: (bytes) => {
        const decoded = message.decode(bytes) as object;
        this.#hex.set(decoded, Buffer.from(bytes).toString("hex"));
        return decoded;
      },
    };
  }

  #note(path: string, request: unknown, call: GrpcCall): void {
    const hex = this.#hex.get(request as object) as string;
    this.calls.push({ method: path.slice(path.lastIndexOf("/") + 1), request, hex, metadata: call.metadata });
  }

  #putBlob({ jsonData: json, rawData: bytes, blobType: type }: PutBlobRequest): { readonly blobId: string } {
    const blobId = String(this.blobs.size).padStart(64, "0");
    this.blobs.set(blobId, { ...(json === undefined ? {} : { json }), ...(bytes === undefined ? {} : { bytes }), type });
    return { blobId };
  }

  #getBlob(blobId: string): unknown {
    const blob = this.blobs.get(blobId);
    if (blob === undefined) throw new GrpcError(GrpcCode.NOT_FOUND, `blob '${blobId}' not found`);
    return { blobId, blobType: blob.type, ...(blob.bytes === undefined ? { jsonData: blob.json } : { rawData: blob.bytes }) };
  }
}

/** Lets a test send bytes as they are. */
function passing(message: Message): Pick<Message, "encode" | "decode"> {
  return { encode: (value) => (value instanceof Uint8Array ? value : message.encode(value)), decode: (bytes) => message.decode(bytes) };
}
