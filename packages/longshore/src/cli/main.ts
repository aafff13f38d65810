// The `longshore` command. Exit codes: 0 it worked; 1 the run that was waited for did not succeed, or the doctor found something wrong;
// 2 the command could not do its work: a mistake in its arguments, a server that is missing or refuses.

import { exitCodeOf } from "./failure.ts";
import { createProgram } from "./program.ts";

// The reader may have read enough (`longshore runs | head -1`): then there is nothing left to print. A service whose log is
// not read any more continues.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 2));
process.stderr.on("error", () => {});

/** Long enough for what is still to be written; shorter than supervisors wait before they kill. */
const restMs = 2_000;

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  process.exitCode = exitCodeOf(error, (line) => process.stderr.write(`${line}\n`));
}
// A command is over when it returns. A file that was loaded for its tasks may hold something open forever, such as a pool of connections.
setTimeout(() => process.exit(), restMs).unref();
