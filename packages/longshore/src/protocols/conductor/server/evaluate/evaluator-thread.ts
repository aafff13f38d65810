// The program of a thread that evaluates expressions, one at a time. The languages are loaded with the first expression in them.

import { type MessagePort, parentPort } from "node:worker_threads";
import { type Evaluated, type Evaluation, memoryBytesMax } from "./evaluation.ts";
import { withinLimits } from "./limits.ts";

const pageBytes = 65_536;

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** The types of Node do not have it as a value. */
const { prototype } = (globalThis as unknown as { WebAssembly: { Memory: { prototype: Memory } } }).WebAssembly.Memory;

/** Nothing else limits the memory of a WebAssembly module. One that may not grow reports that it has no memory left. */
const { grow } = prototype;
prototype.grow = function (pages) {
  if (this.buffer.byteLength + pages * pageBytes > memoryBytesMax) throw new RangeError("the memory of expressions is full");
  return grow.call(this, pages);
};

/** Both languages write to the console what code tells them to, such as with `stderr` of jq. That is no text of this server. */
for (const method of ["log", "info", "warn", "error"] as const) console[method] = () => {};

/** jq can read the path of its program, which would be the path of this server. */
process.argv.length = 1;

/** Loads the language of an evaluation. The time of the code counts from then on. */
async function load({ language }: Evaluation): Promise<(evaluation: Evaluation) => Evaluated | Promise<Evaluated>> {
  if (language === "jq") return (await import("./jq.ts")).loadJq();
  return (await import("./javascript.ts")).loadJavaScript();
}

const port = parentPort as MessagePort;
port.on("message", (evaluation: Evaluation) => {
  const evaluated = async () => {
    const evaluate = await load(evaluation);
    port.postMessage({ begun: true });
    return withinLimits(await evaluate(evaluation));
  };
  evaluated().then(
    (result) => port.postMessage({ evaluated: result }),
    // The evaluated code cannot cause this error: a package is missing, or WebAssembly has failed. The thread may be unusable, so it ends.
    (error: unknown) => {
      const { code, message } = error as { code?: string; message?: string };
      port.postMessage({ broken: { code, message } });
    },
  );
});
