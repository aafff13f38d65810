// Reserves standard output for the program that started this one, which reads a single message from it and then nothing more.

/**
 * Redirects all output of this process to standard error, including that of handlers and their threads: when an orchestrator stops reading,
 * the pipe would fill up and block the worker. Returns a function that prints to the real standard output.
 */
export function reserveOutput(): (text: string) => void {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return (text) => void write(text);
}
