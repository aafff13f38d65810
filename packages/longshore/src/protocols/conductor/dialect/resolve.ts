// Evaluates the templates of a plan for one run.

import { isObject, isScalar, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { textSize } from "../../../core/text-size.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import type { Ending, Plan, PlanNode, Template } from "../../../engine/run/plan.ts";
import { type RecordHead, recordHeads } from "../../../engine/run/records-view.ts";
import { successorIdOf, taskIdOf } from "../../../engine/run/run.ts";
import { type Environment, RunContext } from "./context.ts";
import { fillValue } from "./fill.ts";
import { DynamicFork } from "./grow.ts";
import { attemptIdOf } from "./ids.ts";
import { Iterating, itemsOf, loopOf } from "./iterate.ts";
import { javaText } from "./java-text.ts";
import { exclusiveJoinOutput, joinInput, joinOutput } from "./join.ts";
import { dynamicDefinition } from "./placement.ts";
import { quoteText, unquote } from "./quoting.ts";
import { choiceOutput, outputOf, selectedIn } from "./records.ts";
import type { ConductorTemplate, InputTemplate, SwitchTemplate } from "./template.ts";
import { waitUntil } from "./wait.ts";

/** Maximum size of a run's variables as JSON. */
const variablesCharsMax = 256 * 1_024;

export function resolve(plan: Plan, template: Template, scope: Scope, environment: Environment): Resolved {
  return new Resolving(plan, scope, environment).resolve(template as ConductorTemplate);
}

class Resolving {
  readonly #plan: Plan;
  readonly #scope: Scope;
  readonly #environment: Environment;

  constructor(plan: Plan, scope: Scope, environment: Environment) {
    this.#plan = plan;
    this.#scope = scope;
    this.#environment = environment;
  }

  resolve(template: ConductorTemplate): Resolved {
    switch (template.kind) {
      case "nothing":
        return { value: {} };
      case "impossible":
        return { failed: template.reason, fault: "unmade" };
      case "input":
        return this.#input(template);
      case "dynamic":
        return this.#dynamic(template);
      case "switch":
        return this.#then(this.#input(template.switch.input), (input) => ({ value: switchPart(template.switch, template.part, input) }));
      case "selected":
        return this.#selected(template.of);
      case "more-iterations":
      case "loop-turn":
      case "loop-condition":
      case "loop-output":
        return this.#iterating(template);
      case "forked":
        return this.#forked(template);
      case "join-input":
        return { value: joinInput(template) };
      case "join-output":
        return joinOutput(this.#plan, template.joined, this.#scope);
      case "exclusive-join-output":
        return exclusiveJoinOutput(this.#plan, template, this.#scope);
      case "variables":
        return this.#then(this.#input(template.input), (input) => this.#variables(input));
      case "until":
        return this.#then(this.#input(template.input), (input) => untilOf(unquote(input) as JsonObject, this.#scope.now));
      case "ending":
        return this.#then(this.#input(template.input), (input) => ({ value: this.#ending(unquote(input) as JsonObject) }));
      case "child":
        return this.#child(template);
      case "run-output":
        return this.#then(this.#runOutput(template), (output) => ({ value: this.#withSuccessor(output) }));
    }
  }

  #then(first: Resolved, next: (value: JsonObject) => Resolved): Resolved {
    return "value" in first ? next(isObject(first.value) ? (first.value as JsonObject) : {}) : first;
  }

  #fill(compiled: InputTemplate["parameters"]): Resolved {
    const context = new RunContext(this.#plan, this.#scope, this.#environment);
    const filled = fillValue(compiled, context);
    return "needs" in filled ? context.needs() : filled;
  }

  /** A parameter that evaluates to null gets its default from the `inputTemplate` of the task definition. Expressions in this default are not evaluated. */
  #input({ parameters, otherwise }: InputTemplate): Resolved {
    const filled = this.#fill(parameters);
    if (otherwise === null || !("value" in filled) || !isObject(filled.value)) return filled;
    return { value: withDefaults(filled.value as JsonObject, otherwise) };
  }

  /** The definition of the resolved task has its own defaults. */
  #dynamic(template: ConductorTemplate & { kind: "dynamic" }): Resolved {
    return this.#then(this.#input(template.input), (input) => {
      const found = dynamicDefinition(template.task, input, this.#scope);
      if (!("definition" in found)) return found;
      return { value: withDefaults(input, found.definition.inputTemplate ?? {}, true) };
    });
  }

  #iterating(template: ConductorTemplate & { loop: string }): Resolved {
    const loop = loopOf(this.#plan, template.loop);
    const items = loop.items === null ? { value: null } : this.#fill(loop.items);
    if (!("value" in items)) return items;
    const list = loop.items === null ? null : itemsOf(unquote(items.value));
    const reads = "input" in template ? this.#input(template.input) : { value: {} };
    return this.#then(reads, (input) =>
      new Iterating(this.#plan, this.#scope, loop, { input: unquote(input) as JsonObject, items: list }).resolve(template),
    );
  }

  #forked({ part, id, task, input }: ConductorTemplate & { kind: "forked" }): Resolved {
    return this.#then(this.#input(input), (given) => {
      const fork = new DynamicFork(this.#plan, { id, task }, this.#scope);
      return part === "grows" ? fork.grown(given) : fork.shown(given);
    });
  }

  #selected(of: number): Resolved {
    const output = this.#scope.output(of);
    return output === undefined ? { needs: [of] } : { value: selectedIn(output) };
  }

  #variables(input: JsonObject): Resolved {
    const size = textSize({ ...this.#scope.variables(), ...input }, variablesCharsMax);
    if (size <= variablesCharsMax) return { value: input };
    const { id } = this.#scope.run;
    return {
      failed: `The variables payload size: ${size} of workflow: ${id} is greater than the permissible limit: ${variablesCharsMax} bytes`,
      fault: "final",
    };
  }

  #ending(input: JsonObject): Json {
    const status = input.terminationStatus;
    const state = status === "COMPLETED" ? "succeeded" : status === "TERMINATED" ? "cancelled" : "failed";
    const { run, self } = this.#scope;
    const taskId = self === null ? "" : attemptIdOf(taskIdOf(run.id, self.node), self.attempt);
    const reason = input.terminationReason;
    const ending: Ending = {
      state,
      error: typeof reason === "string" && reason !== "" ? reason : `Workflow is ${javaText(status ?? null)} by TERMINATE task: ${taskId}`,
      output: endingOutput(input.workflowOutput),
    };
    return ending as unknown as Json;
  }

  /** The record's input fully describes what to start, so that the starter needs nothing else. */
  #child(template: ConductorTemplate & { kind: "child" }): Resolved {
    const fields: JsonObject = {};
    for (const [field, compiled] of Object.entries(template.param)) {
      const filled = this.#fill(compiled);
      if (!("value" in filled)) return filled;
      if (compiled.kind !== "constant" && asksByName(filled.value)) return { failed: definitionAsks, fault: "final" };
      fields[field] = filled.value;
    }
    return this.#then(this.#input(template.input), (input) => ({
      value: {
        subWorkflowName: fields.name ?? null,
        // An inline definition has its own version.
        subWorkflowVersion: isObject(fields.workflowDefinition) ? null : (fields.version ?? null),
        subWorkflowTaskToDomain: fields.taskToDomain ?? null,
        subWorkflowDefinition: fields.workflowDefinition ?? null,
        priority: fields.priority ?? null,
        idempotencyKey: fields.idempotencyKey ?? null,
        idempotencyStrategy: fields.idempotencyStrategy ?? null,
        workflowInput: input,
      },
    }));
  }

  #runOutput({ parameters, last }: ConductorTemplate & { kind: "run-output" }): Resolved {
    // The output of a run is not quoted: a text in it that looks like a reference to a secret is only data.
    if (parameters !== null) return this.#then(this.#fill(parameters), (output) => ({ value: unquote(output) }));
    if (last !== null && this.#scope.run.state === "succeeded") {
      const record = this.#scope.record(last);
      if (record === undefined) return { needs: [], records: [last] };
      if (record?.state !== "skipped") return this.#outputOf(last);
    }
    const records = this.#scope.records();
    if (records === undefined) return { needs: [], all: true };
    let newest: RecordHead | null = null;
    for (const record of recordHeads(records).values()) if (newest === null || record.ordinal > newest.ordinal) newest = record;
    return newest === null ? { value: {} } : this.#outputOf(newest.node);
  }

  #outputOf(at: number): Resolved {
    const known = this.#scope.record(at);
    // Null: this life of the run has no such record, so it is not requested again. Undefined: it is not loaded.
    const record = known === undefined ? this.#scope.records()?.get(at) : known;
    if (record === undefined) return { needs: [], records: [at] };
    return { value: record === null ? {} : outputOf(this.#plan.nodes[at] as PlanNode, record) };
  }

  /** The output names the run that is started because this one failed. */
  #withSuccessor(output: JsonObject): JsonObject {
    const { run } = this.#scope;
    const failed = run.state === "failed" || run.state === "timed-out";
    return failed && this.#plan.successor ? { ...output, [followerKey]: successorIdOf(run) } : output;
  }
}

const definitionAsks =
  "The definition of the sub-workflow comes from data and has runtimeMetadata, which gives secrets to workers. Leave out runtimeMetadata, or register the task definition.";

/**
 * Returns whether a task definition in the value requests values by name. Such values include secrets, which data must not be able to
 * request.
 */
function asksByName(value: Json): boolean {
  if (isScalar(value)) return false;
  if (Array.isArray(value)) return value.some(asksByName);
  return Object.entries(value).some(([key, part]) => (key === "runtimeMetadata" && !isEmpty(part)) || asksByName(part));
}

function isEmpty(value: Json): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}

/** A run's output, as JSON text. The id of a successor that could not be started is replaced by the reason. */
export function withFollower(output: string | null, reason: string): string {
  return writeExact({ ...(parseExact(output ?? "{}") as JsonObject), [followerKey]: reason });
}

const followerKey = "conductor.failure_workflow";

/** With `missing`, absent keys are also copied. */
function withDefaults(input: JsonObject, otherwise: JsonObject, missing = false): JsonObject {
  const whole = { ...input };
  for (const key of Object.keys(otherwise)) {
    const absent = Object.hasOwn(whole, key) ? whole[key] === null : missing;
    if (absent) setOwn(whole, key, otherwise[key] as Json);
  }
  return whole;
}

/** Converts the value to a text as the reference does: null is `null`, 1 is `1`, a list is `[a, b]`. */
function caseOf(switched: Pick<SwitchTemplate, "key">, input: JsonObject): string {
  const value = Object.hasOwn(input, switched.key) ? input[switched.key] : null;
  return javaText(unquote(value ?? null));
}

function switchPart(switched: SwitchTemplate, part: "input" | "output" | "case", input: JsonObject): Json {
  const found = caseOf(switched, input);
  if (part === "case") return found;
  if (part === "output") return choiceOutput(switched.isDecision, found);
  const starts = switched.known.has(found) ? switched.full.has(found) : switched.otherwise;
  return { ...(switched.isDecision ? {} : input), case: quoteText(found), ...(starts ? { hasChildren: "true" } : {}) };
}

function untilOf(input: JsonObject, now: number): Resolved {
  const wait = waitUntil(input, now);
  if ("failed" in wait) return { failed: wait.failed, fault: "final" };
  return { value: "dueAt" in wait ? wait.dueAt : null };
}

function endingOutput(given: Json | undefined): JsonObject {
  if (given === undefined || given === null) return {};
  return isObject(given) ? (given as JsonObject) : { output: given };
}
