// JavaScript of definitions, in QuickJS compiled to WebAssembly: the code has its own heap and no object of this process. Each evaluation
// has a new runtime, so nothing of it remains.

import * as variant from "@jitl/quickjs-ng-wasmfile-release-sync";
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
  shouldInterruptAfterDeadline,
} from "quickjs-emscripten-core";
import { type Evaluated, type Evaluation, overdue, scriptBytesMax } from "./evaluation.ts";

/** Deep enough for any expression. The interpreter needs a multiple of it on the stack of its thread. */
const stackBytesMax = 256 * 1_024;
/** The name of the code in the stacks of its errors. */
const fileName = "inline";

let engine: Promise<QuickJSWASMModule> | undefined;

export async function loadJavaScript(): Promise<(evaluation: Evaluation) => Evaluated> {
  engine ??= newQuickJSWASMModuleFromVariant(defaultOf(variant));
  const loaded = await engine;
  return (evaluation) => evaluateJavaScript(loaded, evaluation);
}

function evaluateJavaScript(quickJs: QuickJSWASMModule, { code, input, msMax }: Evaluation): Evaluated {
  const runtime = quickJs.newRuntime({
    memoryLimitBytes: scriptBytesMax,
    maxStackSizeBytes: stackBytesMax,
    interruptHandler: shouldInterruptAfterDeadline(Date.now() + msMax),
  });
  const context = runtime.newContext();
  try {
    return evaluateIn(context, code, input, msMax);
  } finally {
    context.dispose();
    runtime.dispose();
  }
}

/** The package declares its types as those of a CommonJS module, but Node loads it as an ES module. */
function defaultOf(module: unknown): QuickJSSyncVariant {
  return (module as { default: QuickJSSyncVariant }).default;
}

function evaluateIn(context: QuickJSContext, code: string, input: string, msMax: number): Evaluated {
  const made: QuickJSHandle[] = [];
  const keep = (handle: QuickJSHandle) => {
    made.push(handle);
    return handle;
  };
  /** Throws the error of the code, as plain data. */
  const run = (text: string) => keep(context.unwrapResult(context.evalCode(text, fileName, { type: "global" })));
  const call = (callee: QuickJSHandle, argument: QuickJSHandle) =>
    keep(context.unwrapResult(context.callFunction(callee, context.undefined, argument)));
  try {
    // Made before the code runs, which may replace what it finds.
    const [read, write] = [run("JSON.parse"), run(writerCode)] as [QuickJSHandle, QuickJSHandle];
    context.setProp(context.global, "$", call(read, keep(context.newString(input))));
    return { output: context.getString(call(write, run(code))) };
  } catch (error) {
    return failureOf(error, msMax);
  } finally {
    for (const handle of made) if (handle.alive) handle.dispose();
  }
}

/** Numbers that JSON does not have are written as texts, as the real server writes them. */
const writerCode = `((stringify, isFinite, String) => (value) =>
  stringify(value, (key, part) => (typeof part === "number" && !isFinite(part) ? String(part) : part)) ?? "null")(JSON.stringify, Number.isFinite, String)`;

/** Errors of the language itself, for which the real server names the line. */
const namesLine = new Set(["ReferenceError", "TypeError", "RangeError", "SyntaxError"]);

function failureOf(error: unknown, msMax: number): Evaluated {
  const { name, message, stack, cause } = described(error);
  if (name === "InternalError" && message === "interrupted") return { failed: overdue(msMax), isLimit: true };
  // An object without a name, which code may throw too.
  const thrown = name !== undefined ? `${name}: ${capitalised(message ?? "")}` : typeof cause === "object" ? "Error" : String(cause);
  const line = namesLine.has(name ?? "") ? /inline:(\d+)/.exec(stack ?? "")?.[1] : undefined;
  return { failed: `Error evaluating the script \`${thrown}\`${line === undefined ? "" : ` at line ${line}`}` };
}

/** QuickJS and the real server's engine have the same texts but for the first letter of some. */
function capitalised(message: string): string {
  return message.replace(/^cannot /, "Cannot ");
}

/** The library throws an error whose cause is what the code threw. */
function described(error: unknown): { name?: string; message?: string; stack?: string; cause?: unknown } {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const { name, message, stack } = Object(cause) as { name?: unknown; message?: unknown; stack?: unknown };
  return { cause, ...(typeof name === "string" ? { name, message: String(message), stack: String(stack) } : {}) };
}
