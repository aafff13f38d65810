// The app of `dev FILE...`: its worker runs in a process of its own, and its workflows are defined on the server. Both are done again whenever
// a file changes.

import { relative } from "node:path";
import type { WorkflowVersion } from "../client/client.ts";
import type { DefinedSchedule } from "../client/schedule.ts";
import { toError } from "../core/errors.ts";
import type { Schedule } from "../schedule.ts";
import type { Workflow } from "../workflow-value.ts";
import { type Ending, startWorkerChild, type WorkerChild } from "./child.ts";
import { watchFiles } from "./watch-files.ts";
import type { AppLoaded } from "./worker-process.ts";

export interface DevApp {
  /** Resolves when the files were loaded and their workflows defined for the first time, or could not be loaded. */
  readonly ready: Promise<void>;
  stop(): Promise<void>;
}

export interface DevAppOptions {
  readonly files: readonly string[];
  readonly url: string;
  readonly token?: string;
  readonly trust?: string;
  readonly define: (workflow: Workflow) => Promise<WorkflowVersion>;
  readonly schedule: (schedule: Schedule) => Promise<DefinedSchedule>;
  /** The process of the app has ended. The ids of its workers begin with this text. */
  readonly endWorkers: (idPrefix: string) => Promise<void>;
  /** Messages of this command about the app. */
  readonly say: (text: string) => void;
  /** Messages of the app itself. */
  readonly line: (text: string) => void;
}

export function startDevApp({ files, define, schedule, endWorkers, say, ...place }: DevAppOptions): DevApp {
  const names = files.join(", ");
  let child: WorkerChild | undefined;
  let stopped = false;
  /** What was last printed about the contents of the files. */
  let contents = "";
  /** Restarts run one after the other: a change during a restart waits for it. */
  let queue: Promise<void> = Promise.resolve();
  let setReady = () => {};
  const ready = new Promise<void>((resolve) => {
    setReady = resolve;
  });

  const start = () => {
    let isLoaded = false;
    const loaded = async (app: AppLoaded) => {
      isLoaded = app.files.length > 0;
      const isFirst = contents === "";
      const found = contentsOf(app).join("\n");
      if (found !== contents && found !== "") say(found);
      contents = found;
      for (const text of await defineAll(app.workflows, define, isFirst)) say(text);
      for (const text of await scheduleAll(app.schedules, schedule)) say(text);
      setReady();
    };
    const started = startWorkerChild({
      ...place,
      files,
      loaded: (app) => void loaded(app).catch((error: unknown) => say(`${names} cannot be served: ${toError(error).message}`)),
    });
    child = started;
    void started.ended.then((ending) => {
      // A server that is closing, or cannot write, takes the tasks back when their leases end.
      endWorkers(started.workerIds).catch(() => {});
      if (child !== started || stopped) return;
      child = undefined;
      setReady();
      // An app of workflows alone has nothing more to do.
      if (isLoaded && ending.code === 0) return;
      say(`${names} ${endingText(ending)} It is started again when a file changes.`);
    });
  };
  const restart = async (path: string) => {
    const old = child;
    child = undefined;
    await old?.stop();
    if (stopped) return;
    say(`${relative(process.cwd(), path)} changed: ${names} is loaded again.`);
    start();
  };

  /** The file of a change for which a restart waits. More changes need no further restart. */
  let changed: string | undefined;
  const stopWatching = watchFiles(files, (path) => {
    const waits = changed !== undefined;
    changed = path;
    if (waits) return;
    queue = queue.then(() => {
      const latest = changed ?? path;
      changed = undefined;
      return restart(latest);
    });
  });
  start();
  return {
    ready,
    async stop() {
      stopped = true;
      stopWatching();
      await queue;
      await child?.stop();
    },
  };
}

function contentsOf({ files }: AppLoaded): string[] {
  return files.map(({ file, tasks, workflows, schedules }) => {
    const lists = [listOf("workflow", workflows), listOf("task", tasks), listOf("schedule", schedules)].filter((list) => list !== "");
    return `${file}: ${lists.join("; ")}.`;
  });
}

function listOf(kind: string, names: readonly string[]): string {
  return names.length === 0 ? "" : `${kind}${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
}

/** Returns what a person must know: workflows that were refused and, after a change, those with a new version. */
async function defineAll(workflows: readonly Workflow[], define: DevAppOptions["define"], isFirst: boolean): Promise<string[]> {
  const startedMs = Date.now();
  const told: string[] = [];
  for (const workflow of workflows) {
    try {
      const { name, version, createdAt } = await define(workflow);
      if (!isFirst && version > 1 && createdAt >= startedMs) told.push(`${name} has version ${version}. Runs that have begun keep theirs.`);
    } catch (error) {
      told.push(`${workflow.name} is refused: ${(error as Error).message}`);
    }
  }
  return told;
}

/** Returns what a person must know: the next time of a schedule that is new, and schedules that were refused. */
async function scheduleAll(schedules: readonly Schedule[], put: DevAppOptions["schedule"]): Promise<string[]> {
  const told: string[] = [];
  for (const schedule of schedules) {
    try {
      const { name, nextAt, created } = await put(schedule);
      if (created && nextAt !== null) told.push(`${name} starts ${schedule.rules.workflow} at ${new Date(nextAt).toISOString()}.`);
    } catch (error) {
      told.push(`${schedule.name} is refused: ${(error as Error).message}`);
    }
  }
  return told;
}

function endingText({ code, signal }: Ending): string {
  if (signal !== null) return `was ended by ${signal}.`;
  if (code === 0) return "ended: it exports no task, workflow or schedule, and calls no work().";
  return `ended with exit code ${code}; its message is above.`;
}
