// `longshore work` with a process for each worker: what each process is sent, and what this process prints for all of them.

import { durationMs } from "../core/duration.ts";
import type { Task } from "../core/task.ts";
import type { WorkerProtocol, WorkerSettings } from "../protocols/worker-half.ts";
import type { HttpOptions } from "../runner/http.ts";
import { type SupervisedHandle, supervise } from "../runner/supervise/supervise.ts";
import { workerProtocol } from "./protocols.ts";
import type { Teller } from "./telemetry.ts";
import { sayWorking } from "./worker.ts";
import type { ChildWork } from "./worker-child.ts";

/** The time after a drain: aborted handlers, last reports and stopping transports take up to 10 s, and then a process has 5 s to end. */
const afterDrainMs = 15_000;
const drainMsDefault = 20_000;

export async function startWorkerProcesses(
  tasks: readonly Task[],
  settings: WorkerSettings,
  { http, teller: { tell, telemetry } }: { readonly http: HttpOptions | undefined; readonly teller: Teller },
): Promise<SupervisedHandle> {
  const groups = groupsOf(tasks, workerProtocol(settings.protocol));
  let waiting = groups.length;
  const connected = () => {
    waiting--;
    // Printed once: a process that is started again prints nothing new.
    if (waiting === 0) sayWorking(settings, tasks, tell);
  };
  const handle = await supervise({
    workers: groups.map((group) => ({ tasks: group.map(({ name }) => name), work: workOf(group, settings, groups.length) })),
    entry: new URL("./worker-child.js", import.meta.url),
    stopGrace: durationMs(settings.drain ?? drainMsDefault, "drain") + afterDrainMs,
    listeners: [{ connected }],
    logger: tell,
    http,
  });
  void handle.closed.then(() => telemetry?.close?.());
  return handle;
}

function groupsOf(tasks: readonly Task[], { perTask }: WorkerProtocol): (readonly Task[])[] {
  return perTask ? tasks.map((task) => [task]) : [tasks];
}

function workOf(group: readonly Task[], settings: WorkerSettings, groups: number): ChildWork {
  const tasks = group.map(({ name }) => name);
  // The server would take two processes with the same id for one worker.
  const workerId = settings.workerId === undefined || groups === 1 ? settings.workerId : `${settings.workerId}-${tasks.join("+")}`;
  const files = [...new Set(group.flatMap(({ module }) => (module === undefined ? [] : [module])))];
  return { files, tasks, settings: { ...settings, workerId, isolate: "auto" } };
}
