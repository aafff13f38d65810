// The worker half of workflow-graph on a server that behaves like the reference, over real sockets. The test controls the clock: a lease of
// 30 s ends when the test moves it. For everything else the test waits until the server has received it.

import type { Context } from "../../src/core/context.ts";
import type { LongshoreError } from "../../src/core/errors.ts";
import { type Task, task } from "../../src/core/task.ts";
import { type WorkflowGraphOptions, workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";
import type { Notice } from "../../src/runner/notices.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type WorkHandle, work } from "../../src/work.ts";
import { ReferenceServer } from "./reference-server.ts";
import { deferred } from "./until.ts";

export const claimPath = /^\/api\/jobs\/claim$/;
export const registerPath = /^\/api\/workers\/register$/;
export const heartbeatPath = /^\/api\/jobs\/[^/]+\/heartbeat$/;
export const logsPath = /^\/api\/jobs\/[^/]+\/logs$/;
export const cancelledPath = /^\/api\/jobs\/[^/]+\/[^/]+\/cancelled$/;
export const completePath = /^\/api\/jobs\/[^/]+\/complete$/;
export const reportPath = /^\/api\/jobs\/[^/]+\/(complete|fail)$/;

interface Setup extends AsyncDisposable {
  readonly server: ReferenceServer;
  readonly clock: TestClock;
  readonly worker: WorkHandle;
  readonly notices: Notice[];
}

export async function setup(options: {
  tasks?: Task[];
  jobs?: Parameters<ReferenceServer["enqueue"]>[0][];
  wire?: WorkflowGraphOptions;
  additions?: boolean;
  slots?: number;
  before?: (server: ReferenceServer) => void;
}): Promise<Setup> {
  const server = await ReferenceServer.start({ additions: options.additions ?? false });
  options.before?.(server);
  for (const job of options.jobs ?? []) server.enqueue(job);
  const clock = new TestClock();
  const notices: Notice[] = [];
  const worker = await work({
    tasks: options.tasks ?? [],
    on: workflowGraph(server.url, { workerId: "w1", ...options.wire }),
    slots: options.slots ?? 1,
    signals: false,
    clock,
    logger: (notice) => void notices.push(notice),
  });
  return {
    server,
    clock,
    worker,
    notices,
    async [Symbol.asyncDispose]() {
      await worker.stop({ force: true });
      await server.close();
    },
  };
}

/** A task whose handler waits until the test ends it. */
export function heldTask(name = "held") {
  const started = deferred<Context>();
  const result = deferred<unknown>();
  const value = task(name, async (_input: unknown, ctx) => {
    started.resolve(ctx);
    return result.promise;
  });
  return { task: value, started: started.promise, resolve: result.resolve, reject: result.reject };
}

export function aborted(signal: AbortSignal): Promise<LongshoreError> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}

/** A task that ends, by throwing the reason, when its signal aborts. */
export function obedientTask(name = "held") {
  const started = deferred<Context>();
  const value = task(name, async (_input: unknown, ctx) => {
    started.resolve(ctx);
    throw await aborted(ctx.signal);
  });
  return { task: value, started: started.promise };
}
