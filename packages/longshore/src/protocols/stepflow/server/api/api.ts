// Assembles the API: its services, REST and gRPC, and the components that this server runs itself.

import type { Caller } from "../../../../core/actions.ts";
import type { Clock } from "../../../../core/clock.ts";
import type { Environment } from "../../../../core/environment.ts";
import type { MakeId } from "../../../../core/ids.ts";
import type { BlobStore } from "../../../../engine/blob/blob.ts";
import type { Board } from "../../../../engine/board/board.ts";
import type { LaneWorker } from "../../../../engine/board/lane-worker.ts";
import type { Lane, TaskRow } from "../../../../engine/board/task.ts";
import type { Workers } from "../../../../engine/board/workers.ts";
import type { Definition } from "../../../../engine/run/dialect.ts";
import type { Plan } from "../../../../engine/run/plan.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { Run } from "../../../../engine/run/run.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import type { GrpcMethod } from "../../../../net/grpc/service.ts";
import type { RouteGroup } from "../../../../net/http/http.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import { itemsLane } from "../../dialect/items.ts";
import type { RouteFacts } from "../../dialect/route-facts.ts";
import { BlobLibrary } from "../blob-library.ts";
import type { Component } from "../builtin/component.ts";
import { BuiltinLibrary } from "../builtin/library.ts";
import { builtinLane } from "../config/queues.ts";
import type { FlowAccess } from "../flow-access.ts";
import type { RuntimeCalls } from "../http/runtime/requests.ts";
import { componentLane } from "../lane.ts";
import type { ComponentSource, ListedComponent } from "./components.ts";
import { Flows } from "./flows.ts";
import { Followers } from "./followers.ts";
import { apiMethods } from "./grpc.ts";
import { ItemRuns } from "./items.ts";
import { Renderer } from "./render.ts";
import { apiRoutes } from "./rest.ts";
import { RunService } from "./run-service.ts";
import { runtimeCalls } from "./runtime-calls.ts";
import type { Services } from "./services.ts";
import { StepRuns } from "./sub-runs.ts";
import { Submitter } from "./submit.ts";
import { createFlowViews } from "./view.ts";
import { WorkerRuns } from "./worker-runs.ts";

/** The parts of the engine that the API uses. */
export interface ApiEngine {
  readonly clock: Clock;
  readonly spanOf: ProtocolEngine["spanOf"];
  readonly makeId: MakeId;
  readonly board: Board;
  readonly runs: Runs;
  readonly reader: Reader;
  readonly workers: Workers;
  readonly blobs: BlobStore;
  plan(definition: Definition): Plan;
  removeRun(runId: string): Promise<boolean>;
  listen(listener: { task?(task: TaskRow): void; run?(run: Run): void }): () => void;
}

export interface ApiOptions {
  readonly engine: ApiEngine;
  /** What flows may read from this machine. */
  readonly access: FlowAccess;
  readonly version: string;
  /** The permissions of workers that this server calls. */
  readonly called: Caller;
  /** Whether the caller holds a task of the run or of a run of the same family. */
  holds(caller: Caller, rootRunId: string): Promise<boolean>;
  /** When false, flows can use blobs, but clients cannot. */
  readonly servesBlobs: boolean;
  readonly environment: Environment;
  /** Components and routes for diagnostics; receives the built-in components. */
  routes?(builtins: readonly Component[]): RouteFacts;
  /** Whether diagnostics also check types. */
  readonly typeCheck?: boolean;
  /** The source of the components of all plugins; receives the built-in components. */
  components(builtins: readonly ListedComponent[]): ComponentSource;
  /** Called with errors that no caller receives. */
  failed(what: string, error: unknown): void;
}

export interface StepflowApi {
  readonly services: Services;
  /** Runs and blobs for workers, over any transport. */
  readonly workerRuns: WorkerRuns;
  readonly calls: RuntimeCalls;
  readonly rest: RouteGroup;
  readonly grpc: readonly GrpcMethod[];
  /** Resumes the work that this server does itself, where the last process left it. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** How many built-in components run at once: each computes, or has a file or a connection open. */
const builtinSlots = 64;
/** How many runs with items are supervised at once. Nearly all of them wait and have released their slots meanwhile. */
const itemsSlots = 64;
/** How many steps may wait for runs that they have started. Each takes a few kilobytes. */
const waitingMax = 100_000;

/** Flows may read variables with this prefix. */
const variablePrefix = "STEPFLOW_VAR_";

/** The environment contains secrets of the server, so a flow gets only variables that are meant for flows. */
function variableReader(environment: Environment, allowed: ReadonlySet<string>): (name: string) => string | undefined {
  return (name) => (allowed.has(name) || name.startsWith(variablePrefix) ? environment[name] : undefined);
}

export function openStepflowApi(options: ApiOptions): StepflowApi {
  const { engine, access, environment, failed } = options;
  const { clock, makeId, runs, reader, board, workers } = engine;
  const blobs: BlobLibrary = new BlobLibrary(engine.blobs, (id) => flows.text(id));
  const flows: Flows = new Flows({ runs, blobs, routes: () => facts, typeCheck: options.typeCheck ?? false });
  const submitter = new Submitter({ clock, makeId, runs, flows, environment: variableReader(environment, access.variables) });
  const items = new ItemRuns({ runs, reader, plan: engine.plan });
  const renderer = new Renderer(reader, createFlowViews(engine.plan));
  const stepRuns = new StepRuns({ runs, reader, flows, submitter, items });
  const builtins = new BuiltinLibrary({ clock, blobs, subRuns: stepRuns, files: access.files, environment });
  const facts = options.routes?.(builtins.components);
  const own = { board, workers, clock, protocol: "local", own: true, lentMax: waitingMax, failed };
  const lanes = new Map<string, LaneWorker>();
  lanes.set(
    builtinLane,
    componentLane({
      ...own,
      lane: builtinLane,
      holder: "stepflow-builtin",
      slots: builtinSlots,
      perform: async (work) => builtins.perform(work),
      abandon: (task) => stepRuns.abandon(task),
    }),
  );
  lanes.set(
    itemsLane,
    componentLane({
      ...own,
      lane: itemsLane,
      holder: "stepflow-items",
      slots: itemsSlots,
      perform: (work) => items.perform(work),
      abandon: (task) => items.abandon(task),
    }),
  );
  const services: Services = {
    clock,
    version: options.version,
    flows,
    blobs,
    runs: new RunService({ clock, runs, reader, flows, items, renderer, submitter, removeRun: engine.removeRun }),
    events: { clock, reader, renderer, items, listen: engine.listen, followers: new Followers() },
    components: options.components(builtins.components.map((component) => ({ ...component, id: component.path }))),
  };
  const workerRuns = new WorkerRuns({ reader, runs: services.runs, flows, renderer, spanOf: engine.spanOf, holds: options.holds });
  let unlisten = () => {};
  return {
    services,
    workerRuns,
    calls: runtimeCalls({ blobs, runs: workerRuns, caller: options.called }),
    rest: apiRoutes(services, options.servesBlobs),
    grpc: apiMethods(services),
    async start() {
      for (const lane of lanes.values()) await lane.recover(reader);
      const resting = new Set(lanes.keys());
      // A lane begins to claim when it gets its first task, so a server without flows has no waiting claims.
      const resume = (lane: string) => {
        if (resting.delete(lane)) lanes.get(lane)?.resume();
      };
      unlisten = engine.listen({
        task(task) {
          const lane = task.lane === null ? undefined : lanes.get(task.lane.name);
          lane?.changed(task);
          if (lane !== undefined && resting.size > 0) resume((task.lane as Lane).name);
        },
      });
      const queued = await reader.queued();
      for (const name of lanes.keys()) if (queued.has(name)) resume(name);
    },
    async close() {
      await Promise.all([...lanes.values()].map((lane) => lane.close(0)));
      unlisten();
    },
  };
}
