// The process of a worker that `dev` or `demo` started: `node worker-process.js FILE...`, with LONGSHORE_URL in its environment. It works for
// the tasks that the files export; a file that calls work() itself only needs to be imported. It sends the parent what the files export,
// because the parent defines their workflows.

import { onTermination } from "../core/signal.ts";
import { workflowsIn } from "../module-exports.ts";
import { watchMistakes } from "../runner/function/mistakes.ts";
import { stderrLogger } from "../runner/notices.ts";
import type { Schedule } from "../schedule.ts";
import type { Workflow } from "../workflow-value.ts";
import { exitCodeOf } from "./failure.ts";
import { functionsIn, type LoadedModule, loadModules, tasksIn } from "./load-tasks.ts";
import { openWorker } from "./worker.ts";

/** The message that the parent gets when the files are loaded. */
export interface AppLoaded {
  readonly kind: "loaded";
  readonly files: readonly ({ readonly file: string } & { readonly [kind in "tasks" | "workflows" | "schedules"]: readonly string[] })[];
  /** The workflows of all files and the workflows that these run, in the order in which they must be defined. */
  readonly workflows: readonly Workflow[];
  /** Each has the name of its workflow. A workflow that the schedule has as a value is in the list above. */
  readonly schedules: readonly Schedule[];
}

/** A person is watching, so log lines are hardly delayed. */
const logFlushMs = 100;

/** When the parent has ended, nothing else would stop this process; so it ends as if it had received SIGTERM. */
function endWithParent(): void {
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  // This listener must not keep the process alive.
  process.channel?.unref();
}

async function main(files: readonly string[], url: string): Promise<void> {
  endWithParent();
  // Comes before the files are loaded, because they may keep a reference to what is replaced here.
  const watch = watchMistakes((message) => stderrLogger({ level: "warn", message }));
  const modules = await loadModules(files, { mayWork: true });
  const tasks = tasksIn(modules);
  process.send?.(newsOf(modules));
  const functions = functionsIn(modules).map((made) => ({ ...made, code: watch(made.code) }));
  if (tasks.length + functions.length === 0) return;
  // The tasks belong to no module here: their handlers run in this process, which is started again when a file changes.
  const inline = tasks.map((task) => ({ ...task, module: undefined }));
  // The parent ends this process at each change and explains that: a log line about the signal would only be in the way.
  const surroundings = { functions, signals: false } as const;
  const { runner } = await openWorker(inline, { on: url, token: process.env.LONGSHORE_TOKEN, logFlush: logFlushMs }, surroundings);
  onTermination(
    process,
    () => void runner.stop(),
    () => void runner.stop({ force: true }),
  );
}

function newsOf(modules: readonly LoadedModule[]): AppLoaded {
  const namesOf = (values: readonly { readonly name: string }[]) => values.map(({ name }) => name);
  const files = modules.map(({ file, tasks, workflows, schedules }) => ({
    ...{ file, tasks: namesOf(tasks), workflows: namesOf(workflows), schedules: namesOf(schedules) },
  }));
  const schedules = [...new Set(modules.flatMap((module) => module.schedules))];
  // Only what a server stores. The workflows that it runs are in the list themselves, and a schema of its input is code.
  const family = workflowsIn(modules).map(({ name, source }) => ({ name, source }));
  return { kind: "loaded", files, workflows: family, schedules: schedules.map((each) => ({ ...each, workflow: each.rules.workflow })) };
}

try {
  await main(process.argv.slice(2), process.env.LONGSHORE_URL ?? "");
} catch (error) {
  process.exitCode = exitCodeOf(error, (line) => process.stderr.write(`${line}\n`));
}
