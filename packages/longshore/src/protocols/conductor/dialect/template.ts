// The templates of this dialect: the content of a plan's nodes until it is evaluated for a run.

import type { JsonObject } from "../../../core/json/json.ts";
import type { Compiled } from "./expression.ts";
import type { SubWorkflowParam, WorkflowTask } from "./model.ts";

/** A task's input: its parameters. A parameter that is missing or null gets the default of the task's definition. */
export interface InputTemplate {
  readonly parameters: Compiled;
  /** Null when there is none. */
  readonly otherwise: JsonObject | null;
}

export type ConductorTemplate =
  | ({ readonly kind: "input" } & InputTemplate)
  /** A DYNAMIC task. Its input contains the name of the task to run, and this name selects the task definition. */
  | {
      readonly kind: "dynamic";
      readonly input: InputTemplate;
      readonly task: Pick<WorkflowTask, "dynamicTaskNameParam" | "taskDefinition">;
    }
  /** A node with this template fails, with this text. */
  | { readonly kind: "impossible"; readonly reason: string }
  | { readonly kind: "nothing" }
  /** The case that a SWITCH has chosen: `part` is the form, as the input or output of the SWITCH shows it, or only its text. */
  | { readonly kind: "switch"; readonly part: "input" | "output" | "case"; readonly switch: SwitchTemplate }
  /** The case that the task `of` has evaluated. */
  | { readonly kind: "selected"; readonly of: number }
  /** A longer definition, when the plan has no iteration after this one. */
  | { readonly kind: "more-iterations"; readonly loop: string; readonly iteration: number }
  /** What follows an iteration: `go`, or anything else for the end. */
  | { readonly kind: "loop-turn"; readonly loop: string; readonly iteration: number }
  /** What the condition of a loop reads. */
  | { readonly kind: "loop-condition"; readonly loop: string; readonly iteration: number; readonly input: InputTemplate }
  | { readonly kind: "loop-output"; readonly loop: string; readonly input: InputTemplate }
  /** A FORK_JOIN_DYNAMIC: the longer definition with its tasks, or its input. */
  | {
      readonly kind: "forked";
      readonly part: "grows" | "input";
      readonly id: string;
      readonly task: WorkflowTask;
      readonly input: InputTemplate;
    }
  /** `otherwise` is only in an EXCLUSIVE_JOIN. */
  | { readonly kind: "join-input"; readonly joinOn: readonly string[]; readonly otherwise?: readonly string[] }
  | { readonly kind: "join-output"; readonly joined: readonly number[] }
  | { readonly kind: "exclusive-join-output"; readonly joined: readonly number[]; readonly defaults: readonly number[] }
  | { readonly kind: "variables"; readonly input: InputTemplate }
  /** The time at which a WAIT ends without a report: milliseconds since 1970, or null. */
  | { readonly kind: "until"; readonly input: InputTemplate }
  | { readonly kind: "ending"; readonly input: InputTemplate }
  | { readonly kind: "child"; readonly input: InputTemplate; readonly param: CompiledSubWorkflow }
  /** The output of a run. Without parameters it is the output of the node `last`, if this node is known in advance. */
  | { readonly kind: "run-output"; readonly parameters: Compiled | null; readonly last: number | null };

export interface SwitchTemplate {
  readonly input: InputTemplate;
  /** The key in the input whose value selects the case. */
  readonly key: string;
  /** A DECISION shows nothing of its input but the case. */
  readonly isDecision: boolean;
  /** The cases that start a node; `otherwise` is for every text that matches none of them. */
  readonly full: ReadonlySet<string>;
  readonly known: ReadonlySet<string>;
  readonly otherwise: boolean;
}

/** The fields of a `subWorkflowParam`, each of which may be an expression. */
export type CompiledSubWorkflow = { readonly [field in keyof SubWorkflowParam]?: Compiled };
