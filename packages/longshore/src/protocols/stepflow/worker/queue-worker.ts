// Handles assignments for workers over gRPC and NATS: claims each with a first heartbeat, and runs it or drops it. Also replies to
// discovery. The transport delivers assignments and decides how one is given back.

import { isTransient } from "../../../core/errors.ts";
import { retry } from "../../../core/retry.ts";
import type { ChannelOptions, GrpcChannel } from "../../../net/grpc/client.ts";
import { GrpcCode } from "../../../net/grpc/status.ts";
import type { Slot, TransportHost } from "../../../runner/transport.ts";
import { type ComponentInfo, type TaskAssignment, TaskErrorCode } from "../wire/messages.ts";
import { OrchestratorService } from "../wire/services.ts";
import { type ComponentDescription, Components } from "./components.ts";
import { failureOfCall, hasCode } from "./grpc-failure.ts";
import { Orchestrators } from "./orchestrators.ts";
import type { QueueSettings } from "./queue-options.ts";
import { QueueTask, type TaskSurroundings } from "./queue-task.ts";

/** Answers to the source of an assignment, such as an acknowledgement. */
export interface Delivery {
  /** This worker or another one has claimed the task. */
  taken(): void;
  /** No orchestrator knew the owner. Deliver it again later. */
  later(): void;
  /** The assignment is useless. With `expected`, no client waits for it any more; without it, the assignment is not a valid task. */
  useless(why: string, expected: boolean): void;
  /** Called about once per second while the claim is not decided. */
  waiting(): void;
}

export type OpenChannel = (address: string, options?: Pick<ChannelOptions, "windowBytes">) => GrpcChannel;

export interface QueueWorkerOptions {
  readonly settings: QueueSettings;
  readonly host: TransportHost;
  readonly open: OpenChannel;
  /** The orchestrator that the worker pulls from; undefined over NATS unless it is configured. */
  readonly orchestratorUrl: string | undefined;
  /** Whether an address is an orchestrator of ours. */
  readonly trusts: (address: string) => boolean;
}

/** As in the reference: an orchestrator that recovers answers UNAVAILABLE for a few seconds. */
const claimTries = 6;
const retryPauseMs = 1_000;
/** An orchestrator waits five seconds for the answer. */
const discoveryTimeoutMs = 4_000;
const discoveryTries = 3;
/** Maximum number of discovery requests in progress. Each orchestrator sends a few. They take no slot, so nothing else limits them. */
export const discoveriesMax = 64;
/** This timeout is short, because the worker is stopping. */
const giveBackTimeoutMs = 2_000;
/** A gRPC stream needs no reply: an unclaimed task is offered again. */
const noDelivery: Delivery = { taken: () => {}, later: () => {}, useless: () => {}, waiting: () => {} };

export class QueueWorker {
  readonly #host: TransportHost;
  readonly #orchestrators: Orchestrators;
  readonly #around: TaskSurroundings;
  readonly #components: Components;
  readonly #claiming = new Set<string>();
  /** Claims and discovery answers in progress. */
  readonly #pending = new Set<Promise<void>>();
  #discoveries = 0;
  #infos: readonly ComponentInfo[] | undefined;

  constructor({ settings, host, open, orchestratorUrl, trusts }: QueueWorkerOptions) {
    const { clock } = host;
    this.#host = host;
    this.#components = new Components(host.tasks);
    this.#orchestrators = new Orchestrators({ clock, open, ...(orchestratorUrl === undefined ? {} : { first: orchestratorUrl }) });
    const running = new Map<string, QueueTask>();
    // Our orchestrators hand tasks over to each other. A task of another orchestrator is another task, even if it has the same id.
    const keyOf = ({ taskId, context }: TaskAssignment) => {
      const url = context?.orchestratorServiceUrl || orchestratorUrl || "";
      return trusts(url) ? taskId : `${url} ${taskId}`;
    };
    this.#around = { settings, orchestrators: this.#orchestrators, components: this.#components, clock, running, keyOf, orchestratorUrl };
  }

  /** True for discovery, which needs no slot and must be answered soon, also while all slots are taken. */
  static isDiscovery(assignment: TaskAssignment): boolean {
    return assignment.execute === undefined;
  }

  /** Claims the task and runs it in the slot, or releases the slot. */
  take(assignment: TaskAssignment, slot: Slot, delivery: Delivery = noDelivery): void {
    this.#track(this.#take(assignment, slot, delivery));
  }

  /** Sends an orchestrator the list of components. */
  discover(assignment: TaskAssignment, delivery: Delivery = noDelivery): void {
    if (this.#discoveries >= discoveriesMax) return delivery.later();
    this.#discoveries++;
    this.#track(this.#discover(assignment, delivery).finally(() => this.#discoveries--));
  }

  /** Returns a task that was never claimed, so that its orchestrator need not wait for the queue timeout. */
  giveBack(assignment: TaskAssignment): void {
    this.#track(this.#giveBack(assignment));
  }

  /** Resolves when all claims and discovery answers are settled. Running tasks belong to the runner. */
  async idle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  close(): Promise<void> {
    return this.#orchestrators.close();
  }

  #track(work: Promise<void>): void {
    const tracked: Promise<void> = work
      // Nothing in there should throw. An error would be a bug of ours, and must not end the process.
      .catch((error) => this.#host.failing("assignment", error))
      .finally(() => this.#pending.delete(tracked));
    this.#pending.add(tracked);
  }

  async #take(assignment: TaskAssignment, slot: Slot, delivery: Delivery): Promise<void> {
    const { execute, taskId, context } = assignment;
    const why = this.#uselessWhy(assignment);
    if (execute === undefined || why !== undefined) {
      slot.release();
      return delivery.useless(why ?? "it is no task", false);
    }
    // The same task was delivered again: the claim took long, an acknowledgement was lost, or its run was recovered. The next heartbeat of
    // the running execution keeps the task.
    const key = this.#around.keyOf(assignment);
    if (this.#claiming.has(key) || this.#around.running.has(key)) {
      slot.release();
      return this.#claiming.has(key) ? delivery.waiting() : delivery.taken();
    }
    const task = new QueueTask(assignment, execute, this.#around);
    this.#claiming.add(key);
    const verdict = await this.#retry("claim", claimTries, delivery, () => task.claim(this.#host.forced));
    this.#claiming.delete(key);
    if (verdict === "ok" || verdict === "cancel") {
      delivery.taken();
      void task.runIn(slot);
      return;
    }
    slot.release();
    // The claim may have arrived although its answer did not.
    if (this.#host.forced.aborted) await this.#giveBack(assignment);
    if (verdict === undefined) delivery.later();
    else if (verdict === "busy") delivery.taken();
    else delivery.useless(`${context?.orchestratorServiceUrl} does not know task ${taskId}`, true);
  }

  async #discover(assignment: TaskAssignment, delivery: Delivery): Promise<void> {
    const url = assignment.context?.orchestratorServiceUrl || this.#around.orchestratorUrl;
    const why = this.#uselessWhy(assignment);
    if (url === undefined || assignment.listComponents === undefined || why !== undefined) {
      return delivery.useless(why ?? "it is neither a task nor a question for components", false);
    }
    this.#infos ??= this.#components.descriptions.map(infoOf);
    const request = { taskId: assignment.taskId, listComponents: { components: [...this.#infos] } };
    const isAnswered = await this.#retry("discovery", discoveryTries, delivery, async () => {
      try {
        await this.#orchestrators.at(url).unary(OrchestratorService.CompleteTask, request, { timeoutMs: discoveryTimeoutMs });
        return true;
      } catch (error) {
        // The request has already been answered, or this answer is too late.
        if (hasCode(error, GrpcCode.NOT_FOUND)) return false;
        throw failureOfCall(`CompleteTask at ${url}`, error);
      }
    });
    if (isAnswered === undefined) delivery.later();
    else if (isAnswered) delivery.taken();
    else delivery.useless("no client waits for the answer", true);
  }

  async #giveBack({ taskId, context }: TaskAssignment): Promise<void> {
    const url = context?.orchestratorServiceUrl || this.#around.orchestratorUrl;
    if (url === undefined) return;
    const error = { code: TaskErrorCode.UNREACHABLE, message: "The worker stops, and has not begun with this task." };
    const run = context?.rootRunId ? { runId: context.rootRunId } : {};
    try {
      await this.#orchestrators
        .at(url)
        .unary(OrchestratorService.CompleteTask, { taskId, error, ...run }, { timeoutMs: giveBackTimeoutMs });
    } catch {
      // Optional: an unclaimed task is offered again anyway.
    }
  }

  /** Repeats the call after transient errors. Undefined when all tries fail, the orchestrator refuses, or the worker begins to drain. */
  async #retry<Value>(what: string, triesMax: number, delivery: Delivery, call: () => Promise<Value>): Promise<Value | undefined> {
    const { clock, draining, failing, working } = this.#host;
    try {
      const value = await retry(call, {
        ...{ clock, triesMax, signal: draining, backoff: { kind: "fixed", delayMs: retryPauseMs } },
        failing: (error, isLast) => {
          failing(what, error);
          if (!isLast) delivery.waiting();
        },
      });
      working(what);
      return value;
    } catch (error) {
      // Transient failures are reported above.
      if (!draining.aborted && !isTransient(error)) failing(what, error);
      return undefined;
    }
  }

  #uselessWhy({ taskId, context }: TaskAssignment): string | undefined {
    if (taskId === "") return "it has no task_id";
    const url = context?.orchestratorServiceUrl || this.#around.orchestratorUrl;
    return url === undefined ? "it does not name its orchestrator" : undefined;
  }
}

function infoOf({ name: componentId, description, inputSchema, outputSchema, path }: ComponentDescription): ComponentInfo {
  return {
    componentId,
    ...(description === undefined ? {} : { description }),
    ...(inputSchema === undefined ? {} : { inputSchema: JSON.stringify(inputSchema) }),
    ...(outputSchema === undefined ? {} : { outputSchema: JSON.stringify(outputSchema) }),
    path,
  };
}
