// jq of definitions: jq itself, compiled to WebAssembly, without files and without the environment of this process. Each evaluation has a
// new instance, because jq may end in the middle and leave any content in its memory.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { compileFunction } from "node:vm";
import { type Evaluated, type Evaluation, memoryBytesMax, outputCharsMax } from "./evaluation.ts";

interface Jq {
  /** Returns the results, one a line; undefined when there is none. Throws an error with the output of jq. */
  raw(json: string, query: string, flags: readonly string[]): string | undefined;
}

interface Instance {
  readonly exports: {
    readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
    _emscripten_stack_restore(at: number): void;
  };
}

/** The part of WebAssembly that the package calls. The types of Node do not have it. */
interface Assembly {
  compile(bytes: Uint8Array): Promise<unknown>;
  instantiate(module: unknown, imports: object): Promise<Instance>;
}
const assembly = (globalThis as unknown as { WebAssembly: Assembly }).WebAssembly;

const pageBytes = 65_536;
/** Functions of C may put values behind their caller, so the stack does not begin at the very end of the memory. */
const stackTop = memoryBytesMax - pageBytes;

export async function loadJq(): Promise<(evaluation: Evaluation) => Promise<Evaluated>> {
  const require = createRequire(import.meta.url);
  const file = require.resolve("jq-web");
  program ??= compileFunction(readFileSync(file, "utf8"), ["module", "exports", "require", "__filename", "__dirname", "WebAssembly"], {
    filename: file,
  }) as (...values: unknown[]) => void;
  const start = program;
  return async (evaluation) => {
    const exported: { exports: unknown } = { exports: {} };
    let instance: Instance | undefined;
    const own = Object.assign(Object.create(assembly) as object, {
      async instantiate(bytes: Uint8Array, imports: Readonly<Record<string, object>>) {
        compiled ??= assembly.compile(bytes);
        const made = await assembly.instantiate(await compiled, { ...imports, [system]: withoutVariables(imports[system], () => made) });
        instance = made;
        const { memory } = made.exports;
        memory.grow((memoryBytesMax - memory.buffer.byteLength) / pageBytes);
        return { instance };
      },
    });
    start(exported, exported.exports, require, file, dirname(file), own);
    const jq = await (exported.exports as Promise<Jq>);
    // The stack that the package comes with has 64 KiB and no guard: a value of a hundred levels overwrites other data of jq. Here the stack of
    // the thread ends first, which V8 guards.
    instance?.exports._emscripten_stack_restore(stackTop);
    return evaluateJq(jq, evaluation);
  };
}

/** The functions of a system that jq imports. */
const system = "wasi_snapshot_preview1";
/** The package makes up an environment: with the path of this program, and its language. */
function withoutVariables(functions: object | undefined, instance: () => Instance): object {
  const sizes = (countAt: number, bytesAt: number) => {
    const view = new DataView(instance().exports.memory.buffer);
    for (const at of [countAt, bytesAt]) view.setUint32(at, 0, true);
    return 0;
  };
  return { ...functions, environ_sizes_get: sizes, environ_get: () => 0 };
}

let program: ((...values: unknown[]) => void) | undefined;
let compiled: Promise<unknown> | undefined;

function evaluateJq(jq: Jq, { code, input }: Evaluation): Evaluated {
  try {
    const lines = (jq.raw(input, filterOf(code), ["-c", "-M"]) ?? "").split("\n").filter(Boolean);
    return { output: listOf(lines) };
  } catch (error) {
    return failureOf(error);
  }
}

/** jq would take code that begins with a dash as an option. */
function filterOf(code: string): string {
  return code.startsWith("-") ? ` ${code}` : code;
}

/** Throws when jq has not written JSON: below a depth of its own it writes a note. */
function listOf(lines: readonly string[]): string {
  const output = `[${lines.join(",")}]`;
  if (output.length <= outputCharsMax) JSON.parse(output);
  return output;
}

interface JqError {
  /** Absent when jq has not ended by itself: it has no memory or no stack left. */
  readonly exitCode?: unknown;
  readonly stderr?: string;
  readonly message?: string;
}

function failureOf(error: unknown): Evaluated {
  const { exitCode, stderr, message } = error as JqError;
  if (error instanceof SyntaxError) return { failed: "its results are not JSON" };
  // What jq wrote, without the name of its input.
  const failed = (stderr?.trim() || message || String(error)).replace(/^jq: error(?: \(at [^)]*\))?: /, "");
  return typeof exitCode === "number" ? { failed } : { failed: `jq was ended: ${failed}`, isLimit: true };
}
