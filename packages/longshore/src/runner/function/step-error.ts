import { LongshoreError } from "../../core/errors.ts";
import type { Command, CommandResult } from "../../core/turn.ts";

/** The error of a step, a child run, a side effect or a signal that did not succeed, for the durable function that awaits it. */
export class StepError extends LongshoreError {
  override readonly name: string = "StepError";
  /** The task, workflow, side effect or signal. */
  readonly step: string;
  /** The number of the last attempt, from 1. */
  readonly attempt: number;
  /** `failed`, or `cancelled` when it was cancelled alone. */
  readonly state: "failed" | "cancelled";
  /** The number of the command in its run. */
  readonly node: number;

  constructor(command: Pick<Command, "kind" | "name" | "shown">, result: CommandResult) {
    const { kind, name } = command;
    const step = command.shown ?? (name === "" ? kind : name);
    const text = result.error ?? result.state;
    const code = result.timedOut ? "LONGSHORE_DEADLINE" : result.state === "cancelled" ? "LONGSHORE_CANCELLED" : "LONGSHORE_TASK_FAILED";
    super(code, `${words[kind] ?? "step"} ${step}: ${text}`, { cause: new Error(text) });
    this.step = step;
    this.attempt = result.attempt ?? 1;
    this.state = result.state === "cancelled" ? "cancelled" : "failed";
    this.node = result.node;
  }
}

const words: { readonly [kind in Command["kind"]]?: string } = { run: "workflow", signal: "signal", local: "side effect", sleep: "sleep" };
