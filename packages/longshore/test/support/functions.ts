// Durable functions on a real server, with workers in its process.

import { task } from "../../src/core/task.ts";
import type { FunctionScope } from "../../src/runner/function/scope.ts";
import { work } from "../../src/work.ts";
import { type FunctionWorkflow, workflow } from "../../src/workflow.ts";
import type { Workflow } from "../../src/workflow-value.ts";
import { startAdminServer } from "./admin.ts";
import { eventually } from "./workflow-graph.ts";

export const double = task("double", async (n: number) => n * 2);
export const refuse = task("refuse", async (): Promise<never> => {
  throw new Error("not today");
});

export type Body = (w: FunctionScope, input: never) => Promise<unknown>;

/** Waits until the assertions pass. */
export function holds(check: () => unknown): Promise<void> {
  return eventually(async () => {
    try {
      await check();
      return true;
    } catch {
      return false;
    }
  });
}

/** A server, a worker and a way to run functions on both. */
export async function setup(workflows: readonly FunctionWorkflow[] = []) {
  const admin = await startAdminServer();
  const { server, clock } = admin;
  const start = (more: readonly FunctionWorkflow[] = []) =>
    work({ tasks: [double, refuse], workflows: [...workflows, ...more], on: server, clock, logger: false, signals: false });
  const run = async (body: Body, input: unknown = null) => {
    const made = workflow("it", body as never);
    const worker = await start([made]);
    const { id } = await server.start(made as Workflow, input);
    return { id, worker, result: () => server.result(id) };
  };
  const steps = async (id: string) => (await admin.api("GET", `/runs/${id}/steps?limit=100`)).body.items;
  return { ...admin, start, run, steps };
}
