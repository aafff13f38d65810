// Three workers with the same handlers: ours, and one for each official SDK. Each is a separate program, started as a user starts it.
import { fileURLToPath } from "node:url";
import type { Child } from "../src/child.ts";
import type { Stage } from "../src/stage.ts";
import { javascriptSdk, pythonWithSdk } from "./fetch.ts";

export interface WorkerOptions {
  /** The file to which the task `mark` adds a line for each execution. */
  marks?: string;
  outbox?: string;
  updateV2?: boolean;
}

export type StartWorker = (stage: Stage, url: string, options?: WorkerOptions) => Promise<Child>;

const program = (name: string): string => fileURLToPath(new URL(`./programs/${name}`, import.meta.url));

export const ourWorker: StartWorker = (stage, url, options = {}) => {
  const folder = stage.folder();
  const env = {
    ...environment(url, options),
    OUTBOX: options.outbox ?? folder,
    UPDATE_V2: options.updateV2 === false ? "no" : "yes",
  };
  return ready(stage.start(process.execPath, [program("our-worker.mjs")], { name: "our worker", cwd: folder, env }));
};

export const javascriptWorker: StartWorker = (stage, url, options = {}) => {
  const env = { ...environment(url, options), SDK: javascriptSdk(), CONDUCTOR_LOG_LEVEL: "ERROR" };
  return ready(stage.start(process.execPath, [program("sdk-worker.mjs")], { name: "JavaScript SDK", cwd: stage.folder(), env }));
};

export const pythonWorker: StartWorker = (stage, url, options = {}) =>
  ready(
    stage.start(pythonWithSdk(), [program("sdk_worker.py")], { name: "Python SDK", cwd: stage.folder(), env: environment(url, options) }),
  );

function environment(url: string, { marks }: WorkerOptions): Record<string, string> {
  return { SERVER_URL: url, ...(marks === undefined ? {} : { MARKS_FILE: marks }) };
}

async function ready(child: Child): Promise<Child> {
  await child.printed(/^ready$/m);
  return child;
}
