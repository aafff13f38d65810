// The `longshore` command. Exit codes: 0 success; 1 the run that was followed did not succeed, or a check found a problem; 2 the command
// could not do its work: a mistake in its arguments, or a server that cannot be reached or refuses.

import { exitCodeOf, wantsJson } from "./failure.ts";
import { createProgram } from "./program.ts";

// The reader may have closed the pipe (`longshore runs | head -1`): then there is nothing left to print. A service continues when its log
// is not read any more.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 2));
process.stderr.on("error", () => {});

/** Long enough to write pending output. Supervisors wait longer before they kill a process. */
const restMs = 2_000;

const json = wantsJson(process.argv);
try {
  await createProgram({ json }).parseAsync(process.argv);
} catch (error) {
  process.exitCode = exitCodeOf(error, (line) => process.stderr.write(`${line}\n`), json);
}
// The process must end when the command returns. A file that was loaded for its tasks may keep it alive, for example with a connection
// pool.
setTimeout(() => process.exit(), restMs).unref();
