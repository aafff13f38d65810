// The process of a worker that `dev` or `demo` started: `node worker-process.js FILE`, with LONGSHORE_URL in its environment. A file
// that exports tasks is worked for; a file that calls work() itself only needs to be imported.

import { importFile, tasksOf } from "../core/load.ts";
import { exitCodeOf } from "./failure.ts";
import { startWorker } from "./worker.ts";

/** A person is watching: log lines are batched only for an unnoticeable time. */
const logFlushMs = 100;

/** When the parent is gone for any reason, nothing would ever stop this process; so it ends itself as if it had got the signal. */
function endWithParent(): void {
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  // Listening must not keep a process alive that has nothing else to do.
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
