// Helper functions for the requests of the chapters, so that a chapter is easy to read.
import type { Step } from "../../src/differential/script.ts";

type More = Partial<Step>;

const JSON_HEADERS = { "content-type": "application/json" };

export const get = (name: string, path: string, more: More = {}): Step => ({ name, method: "GET", path: `/api/v1${path}`, ...more });

/** A string is sent unchanged as the body, any other value as JSON, and undefined as no body. */
export const post = (name: string, path: string, body?: unknown, more: More = {}): Step => ({
  name,
  method: "POST",
  path: `/api/v1${path}`,
  ...(body === undefined ? {} : { headers: JSON_HEADERS, body: typeof body === "string" ? body : JSON.stringify(body) }),
  ...more,
});

export const del = (name: string, path: string): Step => ({ name, method: "DELETE", path: `/api/v1${path}` });

/** Stores a flow and keeps its id. */
export const store = (name: string, flow: unknown, as = "flow"): Step => post(name, "/flows", { flow }, { keep: { [as]: "flowId" } });

/** Runs the flow stored last, waits for its end and keeps the run's id. */
export const run = (name: string, input: readonly unknown[], more: Record<string, unknown> = {}): Step =>
  post(name, "/runs", { flowId: "{{flow}}", input, wait: true, ...more }, { keep: { run: "summary.runId" } });

/** Stores a flow for which the server reports no problem. */
export const flow = (steps: readonly unknown[], output: unknown, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  name: "flow",
  description: "a flow",
  steps,
  output,
  ...more,
});

export const step = (id: string, component: string, input: unknown = { $input: "$" }, more: Record<string, unknown> = {}) => ({
  id,
  component,
  input,
  ...more,
});

/** Stores a flow and runs it once: two steps that many chapters have. */
export const storeAndRun = (
  name: string,
  stored: Record<string, unknown>,
  input: unknown = {},
  more: Record<string, unknown> = {},
): Step[] => [store(`store: ${name}`, stored), run(name, [input], more)];
