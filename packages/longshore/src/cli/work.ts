// `longshore work`: a worker whose tasks are what the given files export.

import { Command } from "commander";
import type { Duration } from "../duration.ts";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, parseCount, parseDuration, parseList, withConnection, withExamples } from "./options.ts";

interface WorkFlags extends ConnectionOptions {
  shell?: boolean;
  labels?: string[];
  slots?: number;
  workerId?: string;
  leaseTtl?: Duration;
  heartbeat?: Duration;
  poll?: Duration;
  cancelPoll?: Duration;
  logFlush?: Duration;
  drain?: Duration;
  cwd?: string;
}

const notes = `A file is a module that exports tasks made by task(), in any way: by name, as default, or in a list.
Ctrl-C and SIGTERM let running tasks finish (--drain); a second one does not wait.`;

export function workCommand(): Command {
  const command = new Command("work")
    .description("take tasks from a server and run them")
    .argument("[file...]", "modules that export tasks");
  withConnection(command)
    .option("--shell", "run commands that name no task with sh -c; off unless given, for whoever can queue a job could run anything here")
    .option("--labels <labels>", "what this worker can do, such as linux,gpu", parseList)
    .option("--slots <number>", "how many tasks run at the same time (default: 10)", parseCount)
    .option("--worker-id <id>", "how the server shall call this worker")
    .option("--lease-ttl <duration>", "how long a task is ours without a sign of life (default: 30s)", parseDuration)
    .option("--heartbeat <duration>", "pause between signs of life (default: a third of the lease)", parseDuration)
    .option("--poll <duration>", "pause between questions for work, on servers that do not let them wait (default: 2s)", parseDuration)
    .option("--cancel-poll <duration>", "pause between looks for a cancel (default: 2s)", parseDuration)
    .option("--log-flush <duration>", "how long log lines may wait for company (default: 500ms)", parseDuration)
    .option("--drain <duration>", "how long running tasks may go on after Ctrl-C (default: 20s)", parseDuration)
    .option("--cwd <folder>", "where shell commands run")
    .action(work);
  return withExamples(
    command,
    [
      ["longshore work tasks.mjs", "the tasks of a file, for a server on this machine"],
      ["longshore work --shell --on http://build:4500 --labels linux", "runs shell commands; no file needed"],
      ["LONGSHORE_TOKEN=... longshore work tasks.mjs --slots 50", "with a token, fifty tasks at a time"],
    ],
    notes,
  );
}

async function work(files: string[], flags: WorkFlags): Promise<void> {
  if (files.length === 0 && !flags.shell) {
    throw new CommandFailure("there is nothing to run. Name a file that exports tasks, or say --shell to run shell commands.");
  }
  const { loadTasks } = await import("./load-tasks.ts");
  const tasks = await loadTasks(files);
  const { startWorker } = await import("./worker.ts");
  const worker = await startWorker(tasks, flags);
  await worker.closed;
}
