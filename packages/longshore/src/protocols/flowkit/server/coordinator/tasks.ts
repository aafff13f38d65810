// FlowKit's tasks: a submitted graph becomes a run.

import { createHash } from "node:crypto";
import { LongshoreError } from "../../../../core/errors.ts";
import { isObject, type JsonObject } from "../../../../core/json/json.ts";
import { writeExact } from "../../../../core/json/json-exact.ts";
import { inTurns } from "../../../../core/slices/slice-work.ts";
import type { Run } from "../../../../engine/run/run.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import { checkInSlices, type GraphChecks } from "../../dialect/check.ts";
import { dialectName } from "../../dialect/compile.ts";
import { sourceOf } from "../../dialect/dialect.ts";
import { argDefaults, checkAdapterArgs } from "../../wire/adapter-args.ts";
import type { CoordinatorLog } from "./parts.ts";

export interface TasksDeps {
  readonly runs: Pick<Runs, "define" | "begin" | "tell">;
  readonly checks?: Omit<GraphChecks, "adapter" | "ignored">;
  readonly log?: Pick<CoordinatorLog, "warn">;
  /** Whether rechunking must name the list to split. */
  readonly strict?: boolean;
}

export interface Submitted {
  /** The id of the run is the `task_id`. */
  readonly run: Run;
  /** Fields of the graph without effect, at most `ignoredMax` of them. */
  readonly ignored: readonly string[];
}

/** How many fields without effect are listed. A graph with more usually repeats the same fields in every node. */
const ignoredMax = 20;

/** The prefix of definition ids that are graphs. */
const graphPrefix = `${dialectName}-`;

export function isGraphRun({ definitionId }: Pick<Run, "definitionId">): boolean {
  return definitionId.startsWith(graphPrefix);
}

export class FlowkitTasks {
  readonly #deps: TasksDeps;

  constructor(deps: TasksDeps) {
    this.#deps = deps;
  }

  /** The run's id is the `task_id`. @throws LongshoreError LONGSHORE_BAD_DEFINITION or LONGSHORE_BAD_INPUT that names the field. */
  async create(task: { params?: unknown; graph: unknown }): Promise<Run> {
    return (await this.submit(task)).run;
  }

  /**
   * The same, for callers that can show the submitter which fields have no effect. Like the reference we ignore unknown fields, but not
   * silently.
   */
  async submit({ params, graph }: { params?: unknown; graph: unknown }): Promise<Submitted> {
    const given = params ?? {};
    if (!isObject(given)) {
      throw new LongshoreError("LONGSHORE_BAD_INPUT", `params is ${JSON.stringify(params)}, expected an object.`, {
        detail: { field: "params" },
      });
    }
    const ignored: string[] = [];
    const checks: GraphChecks = {
      ...this.#deps.checks,
      adapter: (name, args) => this.#wrongArgs(name, args),
      ignored: (field) => {
        if (ignored.length < ignoredMax) ignored.push(field);
      },
    };
    const checked = await inTurns(checkInSlices(graph, checks));
    const source = sourceOf(checked);
    // Equal graphs are one definition. The dot keeps it out of the list of workflows that are started by name.
    const id = `${graphPrefix}${createHash("sha256").update(source).digest("hex").slice(0, 32)}`;
    await this.#deps.runs.define({ id, name: `.${id}`, dialect: dialectName, source });
    const input = writeExact({ params: given as JsonObject });
    const named = checked.name === undefined ? {} : { workflow: checked.name };
    const { run } = await this.#deps.runs.begin({ ...named, definitionId: id, input });
    if (ignored.length > 0) {
      const message = `The graph of task ${run.id} has fields that Longshore does not read: ${ignored.join(", ")}`;
      this.#deps.log?.warn(message, { event: "coord.task.fields_ignored", task_id: run.id });
    }
    return { run, ignored };
  }

  /** Returns the run after the cancel; undefined when there is none. A run that has ended is not changed. */
  cancel(taskId: string, reason: string = "user_request"): Promise<Run | undefined> {
    return this.#deps.runs.tell(taskId, { kind: "cancel", error: reason });
  }

  /** Only workers know the adapters that users add, so the arguments of these are checked only there. */
  #wrongArgs(name: string, args: JsonObject): string | null {
    const { strict = false } = this.#deps;
    const checked = checkAdapterArgs(name, args, { ...argDefaults, strict });
    return checked === undefined || checked.ok ? null : `are refused by ${name}: ${checked.why}`;
  }
}
