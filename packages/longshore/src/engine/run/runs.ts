// The API of runs: definitions, starting, cancelling, retrying, waiting for the result.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { EventTrigger } from "../../core/event-trigger.ts";
import type { FailureListener } from "../../core/failure-listener.ts";
import type { MakeId } from "../../core/ids.ts";
import { checkName } from "../../core/names.ts";
import { type GiveUp, Results } from "../../core/results.ts";
import { Slices } from "../../core/slices/slices.ts";
import { compileInTurns, dialectOf } from "./brain.ts";
import type { Definition, Dialect } from "./dialect.ts";
import type { Foreseen } from "./foresight.ts";
import { originIdOf } from "./grown-ids.ts";
import { MessageLoop, type Starter } from "./message-loop.ts";
import type { Plan } from "./plan.ts";
import { isRunOpen, type Run, type RunHead } from "./run.ts";
import type { NewRun, Order, RunStore, Started } from "./store.ts";

export interface StartOptions {
  workflow: string;
  /** JSON text. */
  input: string;
  /** Two starts with the same key and input start one run. With another input, the second one is refused with LONGSHORE_CONFLICT. */
  key?: string;
  alias?: string;
  unlessRunning?: boolean;
  /** The run begins after this delay. */
  delayMs?: number;
  /** Added to the priority of its tasks. Tasks with smaller numbers are taken first. */
  priority?: number;
}

/** What `define` stores. */
export interface Defining {
  readonly name: string;
  readonly dialect: string;
  readonly source: string;
  readonly id?: string;
  /** The events that start it, for a definition whose source does not have them. */
  readonly events?: readonly EventTrigger[] | undefined;
}

/**
 * The workflows of a dialect by name. For a dialect that keeps its own documents and makes a definition from them at each start, so that a
 * name has several definitions.
 */
export interface NamedWorkflows {
  /** Stores a workflow from a source that the dialect's parser has accepted. Returns the definition that a run would now start. */
  define(source: string): Promise<Definition>;
  /** What a start by this name starts; `input` is JSON text. Undefined when the dialect has no workflow of this name. */
  start(name: string, input: string): Promise<NamedStart | undefined>;
}

export type NamedStart = Pick<NewRun, "definitionId" | "input" | "settings" | "variables">;

export class Runs {
  readonly #store: RunStore;
  readonly #clock: Clock;
  readonly #makeId: MakeId;
  readonly #dialects: ReadonlyMap<string, Dialect>;
  readonly #slices: Slices;
  readonly #results = new Results<Run>();
  readonly #messages: MessageLoop;
  readonly #named = new Map<string, NamedWorkflows>();
  readonly #isRepeat: () => boolean;

  constructor(options: {
    store: RunStore;
    clock: Clock;
    makeId: MakeId;
    dialects: ReadonlyMap<string, Dialect>;
    slices?: Slices;
    trouble?: FailureListener;
    /** Whether the current request may have been performed before, with the same ids. Default: never. */
    isRepeat?: () => boolean;
  }) {
    this.#isRepeat = options.isRepeat ?? (() => false);
    this.#slices = options.slices ?? new Slices();
    this.#store = options.store;
    this.#clock = options.clock;
    this.#makeId = options.makeId;
    this.#dialects = options.dialects;
    this.#messages = new MessageLoop({
      ...{ store: options.store, clock: options.clock, makeId: options.makeId, trouble: options.trouble, dialects: options.dialects },
      define: (definition) => this.define(definition),
    });
  }

  /** Sets the starter for runs that name what to start in the format of this dialect. Must be called before any message is carried out. */
  startsFor(dialect: string, starter: Starter): void {
    this.#messages.startsFor(dialect, starter);
  }

  /** Sets how workflows of this dialect are stored and started by name. Must be called before a definition file is read. */
  namesFor(dialect: string, named: NamedWorkflows): void {
    this.#named.set(dialect, named);
  }

  /** Rejects with LONGSHORE_BAD_DEFINITION for an invalid source. A large one is compiled in turns. */
  async check(dialect: string, source: string): Promise<Plan> {
    const plan = await compileInTurns(dialectOf(this.#dialects, dialect), source, this.#slices);
    for (const { id } of plan.nodes) checkName(id, "name", "a step");
    return plan;
  }

  /**
   * Stores a definition under its name. The dialect's parser has accepted `source`; compiling it here proves that it can run. Rejects with
   * LONGSHORE_BAD_DEFINITION when it runs a workflow that is not defined.
   */
  async define(definition: Defining): Promise<Definition> {
    // A program that starts a workflow value defines it each time.
    const newest = definition.id === undefined ? await this.#store.definition(definition.name) : undefined;
    if (definition.events === undefined && newest?.dialect === definition.dialect && newest.source === definition.source) return newest;
    const plan = await this.check(definition.dialect, definition.source);
    await this.#refuseMissing(definition.name, plan);
    const { name, dialect, source, id = this.#makeId(this.#clock.now()) } = definition;
    return this.#store.define({ id, name, dialect, source }, plan, definition.events);
  }

  /** Stores a definition file in the way that its dialect requires. */
  defineNamed(definition: Defining): Promise<Definition> {
    return this.#named.get(definition.dialect)?.define(definition.source) ?? this.define(definition);
  }

  /** A definition may run itself, so its own name counts as defined. */
  async #refuseMissing(name: string, { nodes }: Plan): Promise<void> {
    const looked = new Set([name]);
    for (const node of nodes) {
      if (node.kind !== "run" || node.workflow === null || looked.has(node.workflow)) continue;
      looked.add(node.workflow);
      if ((await this.#store.definition(node.workflow)) !== undefined) continue;
      throw new LongshoreError(
        "LONGSHORE_BAD_DEFINITION",
        `Step ${node.id} of workflow ${name} runs the workflow ${node.workflow}, which is not defined. Define ${node.workflow} first.`,
        { detail: { field: `steps.${node.id}.workflow`, expected: "the name of a definition" } },
      );
    }
  }

  definition(name: string): Promise<Definition | undefined> {
    return this.#store.definition(name);
  }

  definitionById(id: string): Promise<Definition | undefined> {
    return this.#store.definitionById(id);
  }

  /** Starts a run of one definition, which need not be the newest under its name. Without `workflow` the run's own id is its name. */
  begin(run: Omit<NewRun, "id" | "workflow"> & { id?: string; workflow?: string }): Promise<Started> {
    const id = run.id ?? this.#makeId(this.#clock.now());
    return this.#startOnce({ ...run, id, workflow: run.workflow ?? id });
  }

  /**
   * Applies a request to a run, and returns the run afterwards; undefined when there is none. A request that does not fit its state changes
   * nothing.
   */
  async tell(runId: string, order: Order): Promise<Run | undefined> {
    const run = await this.#store.tell(runId, order);
    // When the caller gets its result, the child runs have ended too.
    await this.#messages.cancelsCarried();
    return run;
  }

  /** What an order would do; undefined when there is no such run, null when the order does not apply to its state. */
  foresee(runId: string, order: Order): Promise<Foreseen | null | undefined> {
    return this.#store.foresee(runId, order);
  }

  /** Ends the delays of the run's queued tasks. */
  hasten(runId: string): Promise<boolean> {
    return this.#store.hasten(runId);
  }

  async start({ delayMs = 0, ...options }: StartOptions): Promise<Started> {
    const definition = await this.#store.definition(options.workflow);
    const named = await this.#namedStart(options, definition);
    if (definition === undefined && named === undefined) throw unknownWorkflow(options.workflow);
    const now = this.#clock.now();
    const startAt = delayMs > 0 ? now + delayMs : null;
    const what = named ?? { definitionId: (definition as Definition).id };
    return this.#startOnce({ ...options, startAt, sameInput: true, id: this.#makeId(now), ...what });
  }

  /** Uses the dialect of the newest definition. When there is no definition, it tries all dialects. */
  async #namedStart(
    { workflow, input }: Pick<StartOptions, "workflow" | "input">,
    newest: Definition | undefined,
  ): Promise<NamedStart | undefined> {
    const asked = newest === undefined ? [...this.#named.values()] : [this.#named.get(newest.dialect)];
    for (const named of asked) {
      const found = await named?.start(workflow, input);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  run(runId: string): Promise<Run | undefined> {
    return this.#store.run(runId);
  }

  /**
   * Cancels a run. Returns the run afterwards, with the reason as its error; undefined when there is none. A run that has ended is
   * unchanged.
   */
  cancel(runId: string, reason?: string): Promise<Run | undefined> {
    return this.tell(runId, reason === undefined ? { kind: "cancel" } : { kind: "cancel", error: reason });
  }

  /**
   * Cancels a run that was found before, because other runs or a step were cancelled. Nothing is cancelled when this run, or one of the
   * others, has begun another life since then.
   */
  cancelFound(found: RunHead, ...causes: readonly RunHead[]): Promise<Run | undefined> {
    const fence = [found, ...causes].map(({ id, retries }) => ({ runId: id, life: retries }));
    return this.#store.tell(found.id, { kind: "cancel", fence });
  }

  /** Retries what did not succeed, in the same run, and keeps what did. */
  async retry(runId: string): Promise<Run | undefined> {
    const run = await this.#store.run(runId);
    if (run === undefined) return undefined;
    if (isRunOpen(run.state) && run.state !== "blocked")
      throw new LongshoreError("LONGSHORE_CONFLICT", `Run ${runId} is still running: cancel it first, or wait for its end.`);
    if (run.state === "succeeded")
      throw new LongshoreError("LONGSHORE_CONFLICT", `Run ${runId} has succeeded: there is nothing to try again. Use rerun for a new run.`);
    return this.#store.tell(runId, { kind: "retry" });
  }

  /** The order that restarts a run: with this input, or with the newest version of its workflow. */
  async restartOf(run: Run, { input, latest = false }: { input?: string | undefined; latest?: boolean }): Promise<Order> {
    const newest = latest ? await this.#newestOf(run) : undefined;
    const definition = await this.#store.definitionById(run.definitionId);
    const { variables = null } = definition === undefined ? {} : (dialectOf(this.#dialects, definition.dialect).rerunFields?.(run) ?? {});
    return { kind: "restart", variables, ...(newest && { definitionId: newest }), ...(input !== undefined && { input }) };
  }

  async #newestOf({ workflow, input }: Run): Promise<string> {
    const definition = await this.#store.definition(workflow);
    const id = (await this.#namedStart({ workflow, input }, definition))?.definitionId ?? definition?.id;
    if (id === undefined) throw unknownWorkflow(workflow);
    return id;
  }

  /**
   * Starts a new run of the same version as it was before it grew, with the same input or another one. With an id, the same call starts one
   * run.
   */
  async rerun(runId: string, input?: string, newId?: string): Promise<Run | undefined> {
    const run = await this.#store.run(runId);
    if (run === undefined) return undefined;
    const definitionId = originIdOf(run);
    const id = newId ?? this.#makeId(this.#clock.now());
    const workflow = run.workflow === run.id ? id : run.workflow;
    const definition = await this.#store.definitionById(definitionId);
    const kept = definition === undefined ? {} : dialectOf(this.#dialects, definition.dialect).rerunFields?.(run);
    const unlessThere = newId !== undefined;
    return (await this.#startOnce({ ...kept, id, unlessThere, workflow, definitionId, input: input ?? run.input, rerunOf: runId })).run;
  }

  /** Resolves with the run once it has ended, or in its current state when the caller gives up; undefined when there is no such run. */
  result(runId: string, giveUp?: GiveUp): Promise<Run | undefined> {
    return this.#results.of(
      runId,
      () => this.#store.run(runId),
      (run) => isRunOpen(run.state),
      giveUp,
    );
  }

  /** Called by the store after each commit that changed this run. */
  changed(run: Run): void {
    if (!isRunOpen(run.state)) this.#results.tell(run.id, run);
  }

  /** Called by the store when there are new messages, and once at start. */
  carry(): void {
    this.#messages.carry();
  }

  async close(): Promise<void> {
    this.#results.close(
      new LongshoreError("LONGSHORE_CLOSED", "The server was closed before the run ended; the run continues at the next start."),
    );
    await this.#messages.close();
  }

  /** A request that is performed again finds the run that it started before. */
  async #startOnce(run: NewRun): Promise<Started> {
    if (!this.#isRepeat() || run.unlessThere) return this.#store.start(run);
    const started = await this.#store.start({ ...run, unlessThere: true });
    return { ...started, created: started.created || started.run.id === run.id };
  }
}

export function unknownWorkflow(name: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_NOT_FOUND",
    `There is no workflow ${JSON.stringify(name)}. Define it first, or look at the list of definitions.`,
    {
      detail: { field: "workflow", expected: "the name of a definition" },
    },
  );
}
