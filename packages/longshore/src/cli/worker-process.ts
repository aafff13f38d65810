// The process of a worker that `dev` or `demo` started: `node worker-process.js FILE`, with LONGSHORE_URL in its environment. If the file
// exports tasks, this process works for them; if the file calls work() itself, it only needs to be imported.

import { importFile, tasksOf } from "../core/load.ts";
import { exitCodeOf } from "./failure.ts";
import { startWorker } from "./worker.ts";

/** A person is watching: log lines are delayed only for an unnoticeable time. */
const logFlushMs = 100;

/** When the parent has ended, nothing else would stop this process; so it ends as if it had received SIGTERM. */
function endWithParent(): void {
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  // This listener must not keep the process alive.
  process.channel?.unref();
}

async function main(file: string, url: string): Promise<void> {
  endWithParent();
  const tasks = tasksOf(await importFile(file));
  if (tasks.length > 0) await startWorker(tasks, { on: url, token: process.env.LONGSHORE_TOKEN, logFlush: logFlushMs });
}

try {
  await main(process.argv[2] ?? "", process.env.LONGSHORE_URL ?? "");
} catch (error) {
  process.exitCode = exitCodeOf(error, (line) => process.stderr.write(`${line}\n`));
}
