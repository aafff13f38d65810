// YAML of a large file, read in a thread: the parser takes seconds for some megabytes and cannot be interrupted. One thread reads one text
// and ends; there is one at a time.

import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";

/** Longer texts go to a thread: the parser takes some milliseconds for this many characters, and so does the start of a thread. */
export const hereCharsMax = 16_384;
/** Several times what the largest file takes. */
const threadMsMax = 20_000;
const threadMbMax = 1_024;
/** Of YAML: an alias means what it names, so a few lines could otherwise become a very large value. */
const aliasesMax = 100;

/** Plain JavaScript, which a thread starts with whatever reads TypeScript for the rest. Its parser is the one of core/yaml-nesting.ts. */
const program = `
const { parentPort, workerData } = require("node:worker_threads");
const { Parser, parse } = require(workerData.parser);
class ShallowParser extends Parser {
  *next(source) {
    yield* super.next(source);
    if (this.stack.length > workerData.stackMax) throw new RangeError(workerData.nestsTooDeep);
  }
}
try {
  for (const _token of new ShallowParser().parse(workerData.text)) {}
  parentPort.postMessage({ value: parse(workerData.text, workerData.options) });
} catch (error) {
  parentPort.postMessage({ failed: error.message });
}`;

type Outcome = { readonly value: unknown } | { readonly failed: string };

/** How many threads were started so far. */
export const yamlThreads = { started: 0 };
let last: Promise<unknown> = Promise.resolve();

/** Rejects with an Error that explains what is wrong with the text. */
export async function parseYaml(text: string): Promise<unknown> {
  const options = { maxAliasCount: aliasesMax };
  if (text.length <= hereCharsMax) {
    // Loaded where there is YAML to read.
    const [{ parse }, { ShallowParser }] = await Promise.all([import("yaml"), import("../../../../core/yaml-nesting.ts")]);
    for (const _token of new ShallowParser().parse(text));
    return parse(text, options);
  }
  const parser = createRequire(import.meta.url).resolve("yaml");
  const { nestsTooDeep, stackMax } = await import("../../../../core/yaml-nesting.ts");
  const result = last.then(() => inThread({ text, options, parser, nestsTooDeep, stackMax }));
  last = result.catch(() => {});
  const outcome = await result;
  if ("failed" in outcome) throw new Error(outcome.failed);
  return outcome.value;
}

/** Settles when the thread has ended, however that came. */
function inThread(workerData: object): Promise<Outcome> {
  yamlThreads.started++;
  const worker = new Worker(program, { eval: true, workerData, resourceLimits: { maxOldGenerationSizeMb: threadMbMax } });
  return new Promise((resolve) => {
    let outcome: Outcome = { failed: `reading it takes more than ${threadMsMax / 1_000} s or ${threadMbMax} MB, which is the limit` };
    const timer = setTimeout(() => void worker.terminate(), threadMsMax);
    worker.on("message", (received: Outcome) => {
      outcome = received;
    });
    worker.on("error", () => {});
    worker.on("exit", () => {
      clearTimeout(timer);
      resolve(outcome);
    });
  });
}
