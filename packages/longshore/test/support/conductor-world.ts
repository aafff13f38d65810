// Conductor workflows on a real store, with a test clock: a server without its ports.

import type { Json, JsonObject } from "../../src/core/json/json.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { PlanNode } from "../../src/engine/run/plan.ts";
import type { Message, Run } from "../../src/engine/run/run.ts";
import type { NewChild } from "../../src/engine/run/store.ts";
import { conductorDialect } from "../../src/protocols/conductor/dialect/dialect.ts";
import { attemptIdOf } from "../../src/protocols/conductor/dialect/ids.ts";
import type { TaskDef, WorkflowDef } from "../../src/protocols/conductor/dialect/model.ts";
import { reasonOf } from "../../src/protocols/conductor/dialect/reasons.ts";
import {
  isShown,
  outputOf,
  statusOf,
  taskTypeOf,
  workflowStatusOf,
  workflowTaskOf,
} from "../../src/protocols/conductor/dialect/records.ts";
import { documentKinds, type Settings } from "../../src/protocols/conductor/dialect/settings.ts";
import { childRequestOf, lookupsOf, snapshot, startInput } from "../../src/protocols/conductor/dialect/snapshot.ts";
import { parseTaskDef } from "../../src/protocols/conductor/dialect/task-def.ts";
import { parseWorkflowDef } from "../../src/protocols/conductor/dialect/workflow-def.ts";
import { RunRenderer } from "../../src/protocols/conductor/server/render-run.ts";
import { createViews } from "../../src/protocols/conductor/server/view.ts";
import type { ShownTry } from "./orders.ts";
import { openRunWorld } from "./run-world.ts";

/** A record in Conductor's form, with the fields that tests read. */
export interface Shown {
  ref: string;
  type: string;
  status: string;
  input: Json;
  output: Json;
  reason: string | null;
  retryCount: number;
}

export type ConductorWorld = Awaited<ReturnType<typeof openConductor>>;

/** `sliceTasks`: tasks of a run that one transaction ends or makes void. */
export async function openConductor(options: { environment?: { [name: string]: string }; sliceTasks?: number } = {}) {
  const dialect = conductorDialect((name) => options.environment?.[name] ?? null);
  const base = await openRunWorld({
    dialects: [dialect],
    sliceTasks: options.sliceTasks,
    began: (runs) => runs.startsFor(dialect.name, childOf),
  });
  const recordsOf = base.rows;
  const taskDefs = new Map<string, TaskDef>();
  const workflows = new Map<string, WorkflowDef>();
  const newest = (name: string) => [...workflows.values()].filter((one) => one.name === name).sort((a, b) => b.version - a.version)[0];

  const views = createViews(({ id }) => base.planOf({ definitionId: id }));

  /** Stores the definition for a run, and returns its id. */
  async function keep(definition: WorkflowDef): Promise<string> {
    const versions = lookupsOf(definition).workflows.flatMap((name): [string, number][] => {
      const found = newest(name);
      return found === undefined ? [] : [[name, found.version]];
    });
    const source = JSON.stringify(snapshot(definition, taskDefs, new Map(versions)));
    return (await base.runs.define({ name: definition.name, dialect: dialect.name, source })).id;
  }

  async function begin(definition: WorkflowDef, input: JsonObject, settings: Partial<Settings>): Promise<Run> {
    const kept: Settings = { version: definition.version, priority: 0, ...settings };
    const { run } = await base.runs.begin({
      workflow: definition.name,
      definitionId: await keep(definition),
      input: JSON.stringify(startInput(definition, input)),
      settings: JSON.stringify(kept),
      variables: Object.keys(definition.variables).length === 0 ? null : JSON.stringify(definition.variables),
    });
    return run;
  }

  async function childOf(message: Message & { kind: "start-run" }, id: string): Promise<NewChild> {
    const parent = (await base.runs.run(message.from)) as Run;
    const settings = JSON.parse(parent.settings ?? "{}") as Settings;
    const kept = JSON.parse((await base.runs.definitionById(parent.definitionId))?.source ?? "{}") as WorkflowDef;
    const asked = childRequestOf(JSON.parse(message.input) as Json);
    const name = message.parentTaskId === null ? (kept.failureWorkflow ?? "") : asked.name;
    const inline = asked.definition === null ? null : parseWorkflowDef(asked.definition, "child");
    const definition =
      inline !== null && "value" in inline ? inline.value : (workflows.get(`${name}.${asked.version}`) ?? newest(name ?? ""));
    if (definition === undefined) return { failed: `No such workflow defined. name=${name}, version=${asked.version}` };
    const input = message.parentTaskId === null ? { ...(JSON.parse(parent.input) as object), workflowId: parent.id } : asked.input;
    return {
      id,
      workflow: definition.name,
      definitionId: await keep(definition),
      input: JSON.stringify(startInput(definition, input as JsonObject)),
      settings: JSON.stringify({ ...settings, version: definition.version, parentWorkflowId: parent.id }),
    };
  }

  const world = {
    clock: base.clock,
    get board() {
      return base.board;
    },
    get runs() {
      return base.runs;
    },
    get parts() {
      return base.store.parts;
    },
    allRuns: base.allRuns,
    rows: base.rows,
    restart: base.restart,
    findings: base.findings,
    tell: base.tell,
    settle: base.settle,
    poll: base.poll,
    /** Registers a task definition. */
    async task(fields: Partial<TaskDef> & { name: string }): Promise<void> {
      const parsed = parseTaskDef(fields, "test");
      if ("violations" in parsed) throw new Error(JSON.stringify(parsed.violations));
      taskDefs.set(fields.name, parsed.value);
      const document = { kind: documentKinds.task, name: fields.name, version: 1, body: JSON.stringify(parsed.value) };
      await base.store.documents.keepDocument(document);
    },
    /** Registers a workflow definition. */
    workflow(source: object): WorkflowDef {
      const parsed = parseWorkflowDef(source, "test");
      if ("violations" in parsed) throw new Error(JSON.stringify(parsed.violations));
      workflows.set(`${parsed.value.name}.${parsed.value.version}`, parsed.value);
      return parsed.value;
    },
    /** Registers a workflow of these tasks and starts it. */
    async start(
      tasks: object[],
      parts: { input?: JsonObject; settings?: Partial<Settings> } & { [field: string]: unknown } = {},
    ): Promise<string> {
      const { input = {}, settings = {}, ...fields } = parts;
      const run = await begin(world.workflow({ name: "w", tasks, ...fields }), input, settings);
      await world.settle();
      return run.id;
    },
    /** The id of the newest version of a workflow that was registered, as a run keeps it. */
    keep: (name: string): Promise<string> => keep(newest(name) as WorkflowDef),
    /** Starts the newest version of a workflow that was registered. */
    async startNamed(name: string, input: JsonObject): Promise<string> {
      const { id } = await begin(newest(name) as WorkflowDef, input, {});
      await world.settle();
      return id;
    },
    async cancel(id: string, reason: string | null): Promise<void> {
      await base.runs.tell(id, { kind: "cancel", ...(reason === null ? {} : { error: reason }) });
      await world.settle();
    },
    /** Polls one task and reports on it, with this output or with a failure. */
    async work(lane: string, result: { output?: Json; error?: string; terminal?: boolean } = {}): Promise<TaskRow> {
      const task = await world.poll(lane);
      if (task === undefined) throw new Error(`There is nothing to poll of ${lane}.`);
      const hold = { taskId: task.id, grant: task.grant };
      if (result.error === undefined) await base.board.complete(hold, JSON.stringify(result.output ?? {}));
      else await base.board.fail(hold, { error: result.error, retryable: !result.terminal });
      await world.settle();
      return task;
    },
    /** Reports on a task by its reference name, whether it was polled or not. */
    async report(runId: string, ref: string, status: string, output: Json = {}): Promise<void> {
      const task = recordsOf(runId).find((record) => record.step === ref) as TaskRow;
      const hold = { taskId: task.id, attempt: task.attempt };
      const text = JSON.stringify(output);
      if (status === "COMPLETED") await base.board.complete(hold, text);
      else await base.board.fail(hold, { error: "", retryable: status === "FAILED", output: text });
      await world.settle();
    },
    /** Completes a task that waits. */
    signal: (runId: string, ref: string, output: Json = {}) => world.report(runId, ref, "COMPLETED", output),
    async run(id: string) {
      const run = (await base.runs.run(id)) as Run;
      // The reasons of permissive tasks are reported at the end.
      const error = run.endedAt === null ? null : run.error;
      return { ...run, error, status: workflowStatusOf(run.state), output: run.output === null ? null : (JSON.parse(run.output) as Json) };
    },
    /** Records in the order in which they were made; only the newest attempt of each step. */
    async records(id: string): Promise<Shown[]> {
      const run = (await base.runs.run(id)) as Run;
      const plan = base.planOf(run);
      return recordsOf(id)
        .filter((task) => task.state !== "forgotten" && isShown(plan.nodes[task.node] as PlanNode, task))
        .sort((a, b) => a.ordinal - b.ordinal)
        .map((task) => {
          const node = plan.nodes[task.node] as PlanNode;
          const input = JSON.parse(task.input) as Json;
          return {
            ref: node.id,
            type: taskTypeOf(workflowTaskOf(node)!, input),
            status: statusOf(node, task),
            input,
            output: outputOf(node, task),
            reason: reasonOf(node, task),
            retryCount: task.attempt - task.firstAttempt,
          };
        });
    },
    /** The tries of the tasks that workers poll, as the API shows them. */
    async tries(run: Run): Promise<ShownTry[]> {
      const renderer = new RunRenderer(base.reader(), views, () => base.clock.now());
      const found: ShownTry[] = [];
      for await (const { shown, task } of renderer.records(run, await renderer.viewOf(run))) {
        const { taskId, attempt, status, output } = shown;
        if (task.lane !== null) found.push({ taskId, attempt, isCompleted: status === "COMPLETED", output });
      }
      return found;
    },
    async record(id: string, ref: string): Promise<Shown> {
      const found = (await world.records(id)).find((record) => record.ref === ref);
      if (found === undefined) throw new Error(`There is no record of ${ref}.`);
      return found;
    },
    /** `ref:STATUS` of each record, in order. */
    async statuses(id: string): Promise<string[]> {
      return (await world.records(id)).map(({ ref, status }) => `${ref}:${status}`);
    },
    attemptId: (runId: string, ref: string, attempt = 0) => {
      const task = recordsOf(runId).find((record) => record.step === ref) as TaskRow;
      return attemptIdOf(task.id, attempt);
    },
  };
  return world;
}

/** A task of a definition, under its own name by default. */
export function simple(name: string, more: object = {}): object {
  return { name, taskReferenceName: name, type: "SIMPLE", ...more };
}

export function operator(type: string, name: string, more: object = {}): object {
  return { name, taskReferenceName: name, type, ...more };
}

/** A SWITCH on the workflow's input `key`. */
export function switchOn(name: string, cases: { [key: string]: object[] }, defaultCase?: object[], key = "${workflow.input.key}"): object {
  return operator("SWITCH", name, {
    evaluatorType: "value-param",
    expression: "key",
    inputParameters: { key },
    decisionCases: cases,
    ...(defaultCase === undefined ? {} : { defaultCase }),
  });
}

export function fork(name: string, branches: object[][], joinOn: string[], join: object = {}): object[] {
  return [operator("FORK_JOIN", name, { forkTasks: branches }), operator("JOIN", `${name}_join`, { joinOn, ...join })];
}
