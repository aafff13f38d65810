// How a durable function ends, and the errors for code that cannot continue.

import { LongshoreError, toError } from "../../core/errors.ts";
import { toJson } from "../../core/json/to-json.ts";
import type { TurnEnd } from "../../core/turn.ts";
import { StepError } from "./step-error.ts";

/**
 * Thrown by `continueAs`, so that no code after it runs. The function has already ended then, so code that catches this error changes
 * nothing.
 */
export class Continued extends Error {
  constructor() {
    super("The function has called continueAs: this pass of it is over.");
  }
}

export function doneWith(output: unknown): TurnEnd {
  try {
    return { kind: "done", output: toJson(output) };
  } catch (error) {
    return { kind: "failed", error: `The output of the function is not JSON: ${toError(error).message}` };
  }
}

export function failedWith(error: unknown): TurnEnd {
  const node = nodeOf(error);
  return { kind: "failed", error: toError(error).message || toError(error).name, ...(node === undefined ? {} : { node }) };
}

export function blocked(node: number, recorded: string, now: string): TurnEnd {
  const error = `The code does not match the journal at command ${node}: the journal has ${recorded}, ${now}.`;
  return { kind: "blocked", error };
}

/** A side effect holds the turn until it ends, so the result of a command would never reach it. */
export function commandInside(locals: readonly string[], text: string): LongshoreError {
  const todo = "call w outside of w.local(), and pass its results in";
  const which = locals.length === 1 ? `The side effect ${locals[0]}` : `One of the side effects ${locals.join(", ")}`;
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `${which} asks for ${text}, which it cannot wait for: ${todo}.`);
}

/** The command that this error belongs to; also found in the chain of causes. */
function nodeOf(error: unknown): number | undefined {
  let link: unknown = error;
  for (let depth = 0; depth < 10 && link instanceof Error; depth++, link = link.cause) if (link instanceof StepError) return link.node;
  return undefined;
}

/** The error for a function that waits for something that is not a command. */
export function waitsElsewhere(name: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_BAD_DEFINITION",
    `The function ${name} waits for something that is not a command, such as fetch() or setTimeout(): put it into w.local(name, fn), or use w.sleep().`,
  );
}
