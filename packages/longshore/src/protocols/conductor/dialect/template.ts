// The templates of this dialect: the content of a plan's nodes until it is evaluated for a run.

import type { JsonObject } from "../../../core/json/json.ts";
import type { Compiled } from "./expression.ts";
import type { SubWorkflowParam, WorkflowTask } from "./model.ts";

/** A task's input: its parameters, and the defaults of its definition where they are missing or null. */
export interface InputTemplate {
  readonly parameters: Compiled;
  /** Null when there is none. */
  readonly otherwise: JsonObject | null;
}

export type ConductorTemplate =
  | ({ readonly kind: "input" } & InputTemplate)
  /** The name of the task to run is in its input, and its definition is looked up by that. */
  | {
      readonly kind: "dynamic";
      readonly input: InputTemplate;
      readonly task: Pick<WorkflowTask, "dynamicTaskNameParam" | "taskDefinition">;
    }
  /** A node with this template fails, with this text. */
  | { readonly kind: "impossible"; readonly reason: string }
  | { readonly kind: "nothing" }
  /** A SWITCH: which case it is, as its input, its output, or the text alone. */
  | { readonly kind: "switch"; readonly part: "input" | "output" | "case"; readonly switch: SwitchTemplate }
  | { readonly kind: "join-input"; readonly joinOn: readonly string[] }
  | { readonly kind: "join-output"; readonly joined: readonly number[] }
  | { readonly kind: "variables"; readonly input: InputTemplate }
  /** When a WAIT ends without a report: milliseconds since 1970, or null. */
  | { readonly kind: "until"; readonly input: InputTemplate }
  | { readonly kind: "ending"; readonly input: InputTemplate }
  | { readonly kind: "child"; readonly input: InputTemplate; readonly param: CompiledSubWorkflow }
  /** The output of a run. `last` is the node whose output it is when there are no parameters, if that is known in advance. */
  | { readonly kind: "run-output"; readonly parameters: Compiled | null; readonly last: number | null };

export interface SwitchTemplate {
  readonly input: InputTemplate;
  /** The key of its input whose value is the case. */
  readonly key: string;
  /** Cases that start something; with `otherwise` for every text that is no case. */
  readonly full: ReadonlySet<string>;
  readonly known: ReadonlySet<string>;
  readonly otherwise: boolean;
}

/** The fields of a `subWorkflowParam`, each of which may be an expression. */
export type CompiledSubWorkflow = { readonly [field in keyof SubWorkflowParam]?: Compiled };
