// A workflow as a value of a program. Every way of writing a workflow in code makes such a value.

import type { Schema } from "./core/schema/schema.ts";
import type { FunctionSource, WorkflowSource } from "./protocols/longshore/dialect/source.ts";

/** A workflow as a value: define it with `server.define()`, or start it with `server.start()`. */
export interface Workflow<Input = unknown, Output = unknown> {
  readonly name: string;
  /** The workflow in the form in which a server stores it. */
  readonly source: WorkflowSource | FunctionSource;
  /** The workflows that this one runs. A server defines them before this one. */
  readonly uses?: readonly Workflow[];
  /** The schema of its input. A start with a workflow value is refused when the input does not fit. */
  readonly input?: Schema<Input, unknown>;
  /** Only for the type checker. */
  readonly types?: { input: Input; output: Output };
}
