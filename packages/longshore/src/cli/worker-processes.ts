// `longshore work` with a process for each worker: sends each process its work, and prints the messages for all of them.

import { durationMs } from "../core/duration.ts";
import type { Task } from "../core/task.ts";
import type { WorkerProtocol, WorkerSettings } from "../protocols/worker-half.ts";
import type { HttpOptions } from "../runner/http.ts";
import { type SupervisedHandle, supervise } from "../runner/supervise/supervise.ts";
import type { LoadedFunction } from "./load-tasks.ts";
import { workerProtocol } from "./protocols.ts";
import type { WorkerOutput } from "./telemetry.ts";
import { sayWorking } from "./worker.ts";
import type { ChildWork } from "./worker-child.ts";

/**
 * The time that a process has after a drain. Aborting handlers, sending the last reports and stopping transports take up to 10 s; then the
 * process has 5 s to end.
 */
const afterDrainMs = 15_000;
const drainMsDefault = 20_000;

export async function startWorkerProcesses(
  tasks: readonly Task[],
  settings: WorkerSettings,
  around: { readonly http: HttpOptions | undefined; readonly output: WorkerOutput; readonly functions: readonly LoadedFunction[] },
): Promise<SupervisedHandle> {
  const { http, output, functions } = around;
  const { log, telemetry } = output;
  const groups = groupsOf(tasks, functions, workerProtocol(settings.protocol));
  let waiting = groups.length;
  const connected = () => {
    waiting--;
    // Printed once: a process that is started again prints nothing new.
    if (waiting === 0) sayWorking(settings, [...functions, ...tasks], log);
  };
  const handle = await supervise({
    workers: groups.map((group) => ({
      tasks: namesOf([...group.functions, ...group.tasks]),
      work: workOf(group, settings, groups.length),
    })),
    entry: new URL("./worker-child.js", import.meta.url),
    stopGrace: durationMs(settings.drain ?? drainMsDefault, "drain") + afterDrainMs,
    listeners: [{ connected }],
    logger: log,
    http,
  });
  void handle.closed.then(() => telemetry?.close?.());
  return handle;
}

/** The tasks and the server of one process. */
interface Group {
  readonly tasks: readonly Task[];
  readonly functions: readonly LoadedFunction[];
}

/** A protocol with a worker for each task carries no functions: their process refuses them when it starts. */
function groupsOf(tasks: readonly Task[], functions: readonly LoadedFunction[], { perTask }: WorkerProtocol): readonly Group[] {
  if (!perTask) return [{ tasks, functions }];
  const own = functions.length === 0 ? [] : [{ tasks: [], functions }];
  return [...own, ...tasks.map((task) => ({ tasks: [task], functions: [] }))];
}

function workOf({ tasks, functions }: Group, settings: WorkerSettings, groups: number): ChildWork {
  const names = namesOf(tasks);
  // The server would take two processes with the same id for one worker.
  const workerId = settings.workerId === undefined || groups === 1 ? settings.workerId : `${settings.workerId}-${names.join("+")}`;
  const files = [...new Set([...tasks, ...functions].flatMap(({ module }) => (module === undefined ? [] : [module])))];
  return { files, tasks: names, functions: namesOf(functions), settings: { ...settings, workerId, isolate: "auto" } };
}

function namesOf(items: readonly { readonly name: string }[]): string[] {
  return items.map(({ name }) => name);
}
