// Starts a thread with a module of this package as its program.

import { Worker, type WorkerOptions } from "node:worker_threads";

/** `program` is the URL of the module's TypeScript source, relative to the file `from` that starts it. */
export function startProgram(program: URL, from: string, options: WorkerOptions): Worker {
  if (from.endsWith(".ts")) return new Worker(sourceProgram(program), { ...options, eval: true });
  return new Worker(new URL(program.href.replace(/\.ts$/, ".js")), options);
}

/** Tests run the TypeScript source. A thread does not inherit the loader for it, and Node cannot start a thread with such a file. */
function sourceProgram({ href }: URL): string {
  return `import("tsx/esm/api").then(({ tsImport }) => tsImport("${href}", "${href}"))`;
}
