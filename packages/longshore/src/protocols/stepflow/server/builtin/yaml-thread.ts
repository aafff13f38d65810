// Parses the YAML of a large file in a thread: the parser takes seconds for some megabytes and cannot be interrupted. A thread parses one
// text and ends. Only one thread runs at a time.

import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";

/** Longer texts are parsed in a thread. The parser takes some milliseconds for this many characters, as long as starting a thread. */
export const hereCharsMax = 16_384;
/** Several times what the largest file needs. */
const threadMsMax = 20_000;
const threadMbMax = 1_024;
/** Aliases are expanded, so without a limit a few lines could become a very large value. */
const aliasesMax = 100;

/** Plain JavaScript, because the thread has no TypeScript loader. Its parser is the one of core/yaml-nesting.ts. */
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
    // Loaded only when there is YAML to parse.
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

/** Settles when the thread has ended for any reason. */
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
