// The real Python workers, unchanged SDKs of every release with the components of `programs/worker.py`.
import { fileURLToPath } from "node:url";
import type { Child } from "../src/child.ts";
import type { Stage } from "../src/stage.ts";
import { pythonWithSdk, type Release, releases } from "./fetch.ts";

export interface PythonWorkerOptions {
  /** Where the component `mark` leaves a line for each execution. */
  marks?: string;
  env?: Record<string, string>;
}

const program = fileURLToPath(new URL("./programs/worker.py", import.meta.url));

/** A worker that waits for a runtime to call it; answers its address. */
export async function pythonHttpWorker(
  stage: Stage,
  release: Release,
  options: PythonWorkerOptions & { port?: number } = {},
): Promise<{ url: string; child: Child }> {
  const child = startPython(stage, release, ["--port", String(options.port ?? 0)], options);
  const [, port] = await child.printed(/^\{"port": ?(\d+)\}$/m);
  return { url: `http://127.0.0.1:${port}`, child };
}

/** A worker that pulls its tasks over a stream. It has no ready sign of its own: who needs one asks the orchestrator for its components. */
export function pythonGrpcWorker(
  stage: Stage,
  release: Release,
  address: string,
  options: PythonWorkerOptions & { queue?: string } = {},
): Child {
  const env = { STEPFLOW_TASKS_URL: address, STEPFLOW_BLOB_URL: address, STEPFLOW_QUEUE_NAME: options.queue ?? "python", ...options.env };
  return startPython(stage, release, ["--grpc"], { ...options, env });
}

function startPython(stage: Stage, release: Release, args: readonly string[], { marks, env }: PythonWorkerOptions): Child {
  const child = stage.start(pythonWithSdk(release), [program, ...args], {
    name: `stepflow-py ${releases[release].sdk}`,
    cwd: stage.folder(),
    env: { STEPFLOW_LOG_LEVEL: "WARNING", ...(marks === undefined ? {} : { MARKS_FILE: marks }), ...env },
  });
  // An idle one does not hear SIGTERM before the next task comes.
  stage.onClose(() => child.signal("SIGKILL"));
  return child;
}
