// jq of definitions: jq itself, compiled to WebAssembly, without files and without the environment of this process.

import { createRequire } from "node:module";
import { type Evaluated, type Evaluation, outputCharsMax } from "./evaluation.ts";

interface Jq {
  /** Returns the results, one a line; undefined when there is none. Throws an error with the output of jq. */
  raw(json: string, query: string, flags: readonly string[]): string | undefined;
}

let engine: Promise<Jq> | undefined;

export async function loadJq(): Promise<(evaluation: Evaluation) => Evaluated> {
  engine ??= createRequire(import.meta.url)("jq-web") as Promise<Jq>;
  const loaded = await engine;
  return (evaluation) => evaluateJq(loaded, evaluation);
}

function evaluateJq(jq: Jq, { code, input }: Evaluation): Evaluated {
  try {
    const lines = jq.raw(input, code, ["-c", "-M"]) ?? "";
    if (lines.length > outputCharsMax)
      return { failed: `its results have ${lines.length} characters, which is more than the limit of ${outputCharsMax}`, isLimit: true };
    return { output: `[${lines.split("\n").filter(Boolean).join(",")}]` };
  } catch (error) {
    return { failed: reasonOf(error) };
  }
}

/** What jq wrote, without the name of its input. */
function reasonOf(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message?: string };
  const said = stderr?.trim() || message || String(error);
  return said.replace(/^jq: error(?: \(at [^)]*\))?: /, "");
}
