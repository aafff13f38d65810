// The API of runs: definitions, starting, cancelling, retrying, waiting for the result; and the loop that carries out messages between
// runs, one after the other.

import type { Clock } from "../../core/clock.ts";
import { isClosing, isTransient, LongshoreError, toError } from "../../core/errors.ts";
import type { FailureListener } from "../../core/failure-listener.ts";
import type { MakeId } from "../../core/ids.ts";
import { checkName } from "../../core/names.ts";
import { type GiveUp, Results } from "../../core/results.ts";
import { inTurns } from "../../core/slices/slice-work.ts";
import { Slices } from "../../core/slices/slices.ts";
import type { CodeDefinition } from "../../core/workflow-family.ts";
import type { ReservedLanes } from "../board/reserved-lanes.ts";
import { CarriedMessages } from "./carried-messages.ts";
import { decide } from "./decide.ts";
import type { ChildDefinition, Definition, Dialect } from "./dialect.ts";
import { atOnceCharsMax, type Plan } from "./plan.ts";
import { isRunOpen, type Message, type Run, type RunHead, type StartRun, type StoredMessage } from "./run.ts";
import type { Brain, NewChild, NewRun, Order, RunStore } from "./store.ts";

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
  /** Added to the priority of its tasks; smaller is taken first. */
  priority?: number;
}

/** Returns what to start, under this id, for a run that named it in the format of its dialect. */
export type Starter = (message: Message & { kind: "start-run" }, id: string) => Promise<NewChild>;

/**
 * The workflows of a dialect by name, where more than one stored definition belongs to a name: a dialect may keep its own documents, and
 * make a definition of them when a run starts.
 */
export interface NamedWorkflows {
  /** Stores a workflow from a source that the dialect's parser has accepted. Returns what a run of it would start from now. */
  define(source: string): Promise<Definition>;
  /** What a start by name starts; `input` is JSON text. Undefined when the dialect has no workflow of this name. */
  start(name: string, input: string): Promise<NamedStart | undefined>;
}

export type NamedStart = Pick<NewRun, "definitionId" | "input" | "settings" | "variables">;

/** Delay before a message that could not be carried out is tried again. */
const retryMs = 1_000;
/** The name of this activity in the log. */
const messages = "carrying out a message between runs";

export class Runs {
  readonly #store: RunStore;
  readonly #clock: Clock;
  readonly #makeId: MakeId;
  readonly #dialects: ReadonlyMap<string, Dialect>;
  readonly #slices: Slices;
  readonly #results = new Results<Run>();
  #carrying: Promise<void> | null = null;
  #moreLeft = false;
  readonly #carried: CarriedMessages;
  readonly #starters = new Map<string, Starter>();
  readonly #named = new Map<string, NamedWorkflows>();
  readonly #trouble: FailureListener | undefined;
  readonly #isRepeat: () => boolean;
  #closed = false;

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
    this.#trouble = options.trouble;
    this.#isRepeat = options.isRepeat ?? (() => false);
    this.#slices = options.slices ?? new Slices();
    this.#store = options.store;
    this.#clock = options.clock;
    this.#carried = new CarriedMessages(options.clock);
    this.#makeId = options.makeId;
    this.#dialects = options.dialects;
  }

  /** Sets the starter for runs that name what to start in the format of this dialect. Must be called before any message is carried out. */
  startsFor(dialect: string, starter: Starter): void {
    this.#starters.set(dialect, starter);
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
  async define(definition: { name: string; dialect: string; source: string; id?: string }): Promise<Definition> {
    // A program that starts a workflow value defines it each time.
    const newest = definition.id === undefined ? await this.#store.definition(definition.name) : undefined;
    if (newest?.dialect === definition.dialect && newest.source === definition.source) return newest;
    const plan = await this.check(definition.dialect, definition.source);
    await this.#refuseMissing(definition.name, plan);
    const { name, dialect, source, id = this.#makeId(this.#clock.now()) } = definition;
    return this.#store.define({ id, name, dialect, source }, plan);
  }

  /** Stores a definition that a person wrote in the way of its dialect. */
  defineNamed(definition: { name: string; dialect: string; source: string; id?: string }): Promise<Definition> {
    return this.#named.get(definition.dialect)?.define(definition.source) ?? this.define(definition);
  }

  /** A definition may run itself. */
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
  begin(run: Omit<NewRun, "id" | "workflow"> & { id?: string; workflow?: string }): Promise<{ run: Run; created: boolean }> {
    const id = run.id ?? this.#makeId(this.#clock.now());
    return this.#startOnce({ ...run, id, workflow: run.workflow ?? id });
  }

  /** Returns the run afterwards; undefined when there is none. Orders that do not apply to its state change nothing. */
  async tell(runId: string, order: Order): Promise<Run | undefined> {
    const run = await this.#store.tell(runId, order);
    // A caller that ended a run finds its children ended too.
    await this.#carried.wait(
      () => this.#store.newestCancel(),
      () => this.#carrying !== null,
    );
    return run;
  }

  /** Ends the delays of the run's queued tasks. */
  hasten(runId: string): Promise<boolean> {
    return this.#store.hasten(runId);
  }

  async start({ delayMs = 0, ...options }: StartOptions): Promise<{ run: Run; created: boolean }> {
    const definition = await this.#store.definition(options.workflow);
    const named = await this.#namedStart(options, definition);
    if (definition === undefined && named === undefined) throw unknownWorkflow(options.workflow);
    const now = this.#clock.now();
    const startAt = delayMs > 0 ? now + delayMs : null;
    const what = named ?? { definitionId: (definition as Definition).id };
    return this.#startOnce({ ...options, startAt, sameInput: true, id: this.#makeId(now), ...what });
  }

  /** Asks the dialect of the newest definition, or all of them when there is none. */
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
   * Cancels a run that was found before, because of other runs or of a step that were cancelled. A run that has begun another life since is
   * unchanged, and so is every run when one of the others has.
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

  /** Starts a new run of the same version with the same input. */
  async rerun(runId: string): Promise<Run | undefined> {
    const run = await this.#store.run(runId);
    if (run === undefined) return undefined;
    const { definitionId, input } = run;
    const id = this.#makeId(this.#clock.now());
    const workflow = run.workflow === run.id ? id : run.workflow;
    const definition = await this.#store.definitionById(definitionId);
    const kept = definition === undefined ? {} : dialectOf(this.#dialects, definition.dialect).rerunFields?.(run);
    return (await this.#startOnce({ ...kept, id, workflow, definitionId, input })).run;
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
    this.#moreLeft = true;
    if (this.#carrying !== null || this.#closed) return;
    this.#carrying = this.#carryAll().finally(() => {
      this.#carrying = null;
      if (!this.#moreLeft) this.#carried.stopped();
      if (this.#moreLeft) this.carry();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#results.close(
      new LongshoreError("LONGSHORE_CLOSED", "The server was closed before the run ended; the run continues at the next start."),
    );
    await this.#carrying;
  }

  /** A request that is performed again finds the run that it started before. */
  async #startOnce(run: NewRun): Promise<{ run: Run; created: boolean }> {
    if (!this.#isRepeat() || run.unlessThere) return this.#store.start(run);
    const started = await this.#store.start({ ...run, unlessThere: true });
    return { ...started, created: started.created || started.run.id === run.id };
  }

  async #carryAll(): Promise<void> {
    while (this.#moreLeft && !this.#closed) {
      this.#moreLeft = false;
      try {
        await this.#carryOnce();
        this.#trouble?.working(messages);
      } catch (error) {
        // The store cannot be written now, or has been closed, or a message is stuck. Messages are durable, so they are only delayed.
        if (!isTransient(error) && !isClosing(error)) this.#trouble?.failing(messages, error);
        this.#clock.at(this.#clock.now() + retryMs, () => this.carry());
        return;
      }
    }
  }

  async #carryOnce(): Promise<void> {
    const stuck = new Map<number, unknown>();
    for (let carried = true; carried && !this.#closed; ) {
      carried = false;
      for await (const stored of this.#storedMessages()) {
        if (stuck.has(stored.id)) continue;
        try {
          await this.#deliver(stored);
          carried = true;
          this.#carried.reached(stored.id);
        } catch (error) {
          if (isTransient(error) || isClosing(error)) throw error;
          // A message that cannot be carried out, such as a start in an unknown dialect, does not block the others.
          stuck.set(stored.id, error);
        }
      }
    }
    for (const error of stuck.values()) throw error;
  }

  /** All messages in order, page by page: stuck messages must not hide the ones behind them. */
  async *#storedMessages(): AsyncGenerator<StoredMessage, void, void> {
    let page = await this.#store.messages();
    for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
      yield* page;
      page = await this.#store.messages(last.id);
    }
  }

  async #deliver(stored: StoredMessage): Promise<void> {
    const { message } = stored;
    await this.#store.deliver(stored, message.kind === "start-run" ? await this.#childFor(message) : null);
  }

  async #childFor(message: Message & { kind: "start-run" }): Promise<NewChild> {
    const id = message.runId ?? this.#makeId(this.#clock.now());
    const { workflow, input } = message;
    if (message.definition !== undefined) return this.#madeChild(message, message.definition, id);
    if (workflow === null) {
      const starter = this.#starters.get(message.dialect);
      if (starter === undefined)
        throw new LongshoreError("LONGSHORE_NOT_FOUND", `This server has no starter for runs of ${message.dialect} yet.`);
      try {
        return await starter(message, id);
      } catch (error) {
        if (isRefusal(error)) return { failed: toError(error).message };
        throw error;
      }
    }
    const refused = await this.#defineMissing(message.defines ?? []);
    if (refused !== undefined) return { failed: refused };
    const definition = await this.#store.definition(workflow);
    return definition === undefined ? { failed: `there is no workflow ${workflow}` } : { id, definitionId: definition.id, workflow, input };
  }

  /** Stores what workers report with a child run. Returns why a definition is refused. */
  async #defineMissing(definitions: readonly CodeDefinition[]): Promise<string | undefined> {
    for (const { name, dialect, source } of definitions) {
      if ((await this.#store.definition(name)) !== undefined) continue;
      try {
        const { checkReported } = dialectOf(this.#dialects, dialect);
        if (checkReported === undefined) throw notForWorkers(name, dialect);
        checkReported(name, source);
        await this.define({ name, dialect, source });
      } catch (error) {
        if (isRefusal(error)) return toError(error).message;
        throw error;
      }
    }
    return undefined;
  }

  /** A definition with this id is the same one. */
  async #madeChild(
    { dialect, input }: StartRun,
    { id: definitionId, source, workflow, priority }: ChildDefinition,
    id: string,
  ): Promise<NewChild> {
    if ((await this.#store.definitionById(definitionId)) === undefined)
      await this.define({ id: definitionId, name: `.${definitionId}`, dialect, source });
    return { id, definitionId, workflow, input, priority };
  }
}

/** True when the run can never be started: the step that waits for it fails. */
function isRefusal(error: unknown): boolean {
  if (error instanceof LongshoreError) return ["LONGSHORE_BAD_INPUT", "LONGSHORE_BAD_DEFINITION"].includes(error.code);
  // The starter received unexpected data.
  return (error instanceof TypeError || error instanceof RangeError) && !isTransient(error);
}

/** The pure functions that a store is opened with. */
export function brainOf(
  dialects: ReadonlyMap<string, Dialect>,
  { slices = new Slices(), reserved }: { slices?: Slices; reserved: ReservedLanes },
): Brain {
  return {
    plan: (definition) => dialectOf(dialects, definition.dialect).compile(definition.source),
    planInTurns: (definition) => compileInTurns(dialectOf(dialects, definition.dialect), definition.source, slices),
    decide: (plan, frontier, event) => decide({ plan, dialect: dialectOf(dialects, plan.dialect), reserved }, frontier, event),
  };
}

async function compileInTurns(dialect: Dialect, source: string, slices: Slices): Promise<Plan> {
  const work = source.length > atOnceCharsMax ? dialect.compileInSlices?.(source) : undefined;
  return work === undefined ? dialect.compile(source) : inTurns(work, slices);
}

function dialectOf(dialects: ReadonlyMap<string, Dialect>, name: string): Dialect {
  const dialect = dialects.get(name);
  if (dialect === undefined)
    throw new LongshoreError(
      "LONGSHORE_BAD_DEFINITION",
      `There is no dialect ${name}, expected one of ${[...dialects.keys()].join(", ")}.`,
    );
  return dialect;
}

function notForWorkers(name: string, dialect: string): LongshoreError {
  const message = `Workflow ${name} came from a worker, and workers define no workflows of the dialect ${dialect}. Define it with an operator token.`;
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field: "defines" } });
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
