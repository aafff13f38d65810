// Reserves standard output for one message to the program that started this one. That program reads nothing after this message.

/**
 * Redirects all output of this process to standard error, including that of handlers and their threads. The program that started this one
 * stops reading, so other output would fill the pipe and block the worker. Returns a function that prints to the real standard output.
 */
export function reserveOutput(): (text: string) => void {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return (text) => void write(text);
}
