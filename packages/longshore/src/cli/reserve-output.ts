// Standard output as the line of a program that started this one, which reads a single answer from it and then nothing more.

/**
 * Redirects all output of this process to standard error, also that of handlers and their threads: an orchestrator that stops
 * reading would let the pipe fill up, and block the worker. Returns how to print what is really meant for it.
 */
export function reserveOutput(): (text: string) => void {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return (text) => void write(text);
}
