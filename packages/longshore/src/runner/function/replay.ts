// One durable function in the memory of a worker. It gives commands and waits for their results. The same class runs a function for the
// first time, continues it in its next turns, and replays it from a journal: a command that the journal has is compared with it and not
// given again, and results are received in the order of their numbers.
//
// The function is deterministic between results, so after each result this class waits until the function itself waits again
// (`#untilItWaits`) before it passes on the next one.

import { LongshoreError, toError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import { toJson } from "../../core/json/to-json.ts";
import { sizeOf, type ValueSize } from "../../core/text-size.ts";
import { type Command, type CommandResult, commandText, type JournalEntry, type TurnEnd } from "../../core/turn.ts";
import { StepError } from "./step-error.ts";

/** A command without what this class adds. */
export type Asked = Omit<Command, "node" | "after">;

/** The result of a side effect. */
export type LocalResult = { readonly output: Json } | { readonly error: string };

/** Thrown by `continueAs`, so that nothing behind it runs. The function has ended by then: code that catches this changes nothing. */
class Continued extends Error {
  constructor() {
    super("The function has called continueAs: this pass of it is over.");
  }
}

interface Waiting {
  readonly command: Asked;
  resolve(output: Json): void;
  reject(error: Error): void;
}

/** Where the function begins. */
export interface Beginning {
  readonly input: Json;
  readonly startedAt: number;
  /** Results up to this number belong to an earlier life of the run. */
  readonly after: number;
  /** The commands that the run has already, by number. */
  readonly journal: ReadonlyMap<number, JournalEntry>;
  /** Only compares the code with the journal: side effects that the journal does not have are not run. */
  readonly isCheck?: boolean;
}

export class FunctionReplay {
  readonly #journal: ReadonlyMap<number, JournalEntry>;
  readonly #isCheck: boolean;
  readonly #waiting = new Map<number, Waiting>();
  /** Commands that the journal does not have, in order, until they are reported. */
  readonly #fresh: Command[] = [];
  /** Results of side effects that ran here. */
  readonly #own = new Map<number, LocalResult>();
  /** The side effect whose function is being called. */
  #calling: string | null = null;
  readonly #running = new Set<Promise<void>>();
  readonly #versions = new Map<string, number>();
  readonly #set: { [key: string]: Json } = {};
  #hasSet = false;
  #nodes = 0;
  #place: number;
  #now: number;
  #end: TurnEnd | null = null;
  #thrown: unknown;
  /** False outside of turns: a command that is given then comes from something that the function must not wait for. */
  #isTurn = false;
  #strays: string | null = null;
  /** True while the function repeats what it did before. */
  isReplaying = false;

  constructor({ after, startedAt, journal, isCheck = false }: Beginning) {
    this.#isCheck = isCheck;
    this.#place = after;
    this.#now = startedAt;
    this.#journal = journal;
  }

  /** The number of the newest result that the function has received. */
  get place(): number {
    return this.#place;
  }

  get now(): number {
    return this.#now;
  }

  get end(): TurnEnd | null {
    return this.#end;
  }

  /** What the function threw, when its end is a failure. */
  get thrown(): unknown {
    return this.#thrown;
  }

  /** Why this copy cannot continue: it gave a command, or ended, outside of a turn. Null: it can. */
  get strays(): string | null {
    return this.#strays;
  }

  /** Calls the function. It runs until it waits. */
  async begin(call: () => unknown): Promise<void> {
    this.#isTurn = true;
    let called: unknown;
    try {
      called = call();
    } catch (error) {
      this.#finish(this.#failure(error));
      return;
    }
    if (!isPromise(called)) {
      const error = "The function given to workflow() returned without a promise: it must be async. For a static graph use graph().";
      this.#finish({ kind: "failed", error });
      return;
    }
    called.then(
      (output) => this.#finish(this.#done(output)),
      (error: unknown) => this.#finish(this.#failure(error)),
    );
    await this.#untilItWaits();
  }

  /** Passes results on, in order. */
  async receive(results: readonly CommandResult[]): Promise<void> {
    this.#isTurn = true;
    for (const result of results) {
      if (this.#end !== null) return;
      this.#deliver(result);
      await this.#untilItWaits();
    }
  }

  /** Waits until the side effects of this turn have ended. `flush` is called while they run, when other commands can start already. */
  async settle(flush: () => Promise<void>): Promise<void> {
    await this.#untilItWaits();
    while (this.#running.size > 0 && this.#end === null) {
      if (this.#fresh.length > 0) await flush();
      await Promise.race(this.#running);
      await this.#untilItWaits();
    }
    this.#isTurn = false;
  }

  /** Whether the function waits for a command. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0 || this.#fresh.length > 0;
  }

  /** After a replay: the function must have asked for everything that the journal has. */
  checkJournal(): void {
    if (this.#end?.kind === "blocked") return;
    for (const [node, { command }] of this.#journal) {
      if (node <= this.#nodes) continue;
      const now = this.#end === null ? "waits without it" : "has ended";
      this.#end = blocked(node, command, `the code ${now}`);
      return;
    }
  }

  /** Whether this copy can receive the result without reading the journal. */
  knows({ node, state, output }: CommandResult): boolean {
    return state !== "done" || output !== undefined || this.#own.has(node);
  }

  /** Takes at most `max` commands that have not been reported, and fewer when their values are large together; at least one. */
  takeCommands(max: number, { chars, values }: ValueSize): Command[] {
    let count = 0;
    for (const left = { chars, values }; count < Math.min(max, this.#fresh.length); count++) {
      const { input = null, output = null } = this.#fresh[count] as Command;
      for (const value of [input, output]) {
        const size = sizeOf(value, left);
        left.chars -= size.chars;
        left.values -= size.values;
      }
      if (count > 0 && (left.chars < 0 || left.values < 0)) break;
    }
    return this.#fresh.splice(0, count);
  }

  get hasCommands(): boolean {
    return this.#fresh.length > 0;
  }

  takeSet(): { readonly [key: string]: Json } | undefined {
    if (!this.#hasSet) return undefined;
    this.#hasSet = false;
    const taken = { ...this.#set };
    for (const key of Object.keys(this.#set)) delete this.#set[key];
    return taken;
  }

  /** Gives a command; resolves with its result. */
  ask(command: Asked): Promise<Json> {
    const node = this.#next(command);
    if (node === null) return new Promise<Json>(() => {});
    if (!this.#journal.has(node)) this.#fresh.push({ ...command, node, after: this.#place });
    return this.#wait(node, command);
  }

  /** Runs a side effect, unless the journal has its result. */
  local(name: string, run: () => Promise<LocalResult>): Promise<Json> {
    const command: Asked = { kind: "local", name };
    const node = this.#next(command);
    if (node === null) return new Promise<Json>(() => {});
    const result = this.#wait(node, command);
    if (this.#journal.has(node) || this.#isCheck) return result;
    const after = this.#place;
    const running = this.#call(name, run).then((made) => {
      this.#running.delete(running);
      this.#own.set(node, made);
      this.#fresh.push({ ...command, node, after, ...made });
    });
    this.#running.add(running);
    return result;
  }

  /** Begins a side effect. */
  #call(name: string, run: () => Promise<LocalResult>): Promise<LocalResult> {
    this.#calling = name;
    try {
      return run();
    } finally {
      this.#calling = null;
    }
  }

  /** The version of a change in this run: 0 for a run that passed this place before the change existed. */
  version(change: string, newest: number): number {
    const known = this.#versions.get(change);
    if (known !== undefined) return known;
    const command: Asked = { kind: "version", name: change };
    const recorded = this.#journal.get(this.#nodes + 1);
    if (recorded !== undefined && recorded.command !== commandText(command)) return this.#remember(change, 0);
    const node = this.#next(command);
    if (node === null) return newest;
    const output = recorded?.result?.output;
    if (recorded === undefined) this.#fresh.push({ ...command, node, after: this.#place, output: newest });
    return this.#remember(change, typeof output === "number" ? output : newest);
  }

  /** Ends this pass of the function. */
  continueAs(input: Json): never {
    this.#finish({ kind: "continued", input });
    throw new Continued();
  }

  /** Also in a replay: the turn that set the value first may have been lost before its report. */
  set(key: string, value: Json): void {
    this.#hasSet = true;
    this.#set[key] = value;
  }

  #remember(change: string, version: number): number {
    this.#versions.set(change, version);
    return version;
  }

  /** The number of the command; null when the function must not continue. */
  #next(command: Asked): number | null {
    const text = commandText(command);
    if (this.#calling !== null) throw commandInside(this.#calling, text);
    if (!this.#isTurn) {
      this.#strays = `It asked for ${text} after it had waited for something that is not a command.`;
      return null;
    }
    if (this.#end !== null) return null;
    const node = ++this.#nodes;
    const recorded = this.#journal.get(node);
    if (recorded === undefined || recorded.command === text) return node;
    this.#end = blocked(node, recorded.command, `the code asks for ${text} now`);
    return null;
  }

  #wait(node: number, command: Asked): Promise<Json> {
    const result = new Promise<Json>((resolve, reject) => {
      this.#waiting.set(node, { command, resolve, reject });
    });
    handled(result);
    return result;
  }

  #deliver(result: CommandResult): void {
    const { node, place, at } = result;
    this.#place = place;
    this.#now = Math.max(this.#now, at);
    const waiting = this.#waiting.get(node);
    const recorded = this.#journal.get(node)?.command;
    // The result of `version` is known without waiting.
    if (waiting === undefined && (node <= this.#nodes || recorded?.startsWith("version "))) return;
    if (waiting === undefined) {
      this.#end = blocked(node, recorded ?? "a command", "the code has not asked for it by then");
      return;
    }
    this.#waiting.delete(node);
    const own = this.#own.get(node);
    this.#own.delete(node);
    const error = own === undefined ? result.error : "error" in own ? own.error : undefined;
    if (error === undefined && (own !== undefined || result.state === "done"))
      waiting.resolve(own !== undefined && "output" in own ? own.output : (result.output ?? null));
    else waiting.reject(new StepError(waiting.command, { ...result, node, error: error ?? result.error ?? "failed" }));
  }

  #done(output: unknown): TurnEnd {
    try {
      return { kind: "done", output: toJson(output) };
    } catch (error) {
      return { kind: "failed", error: `The output of the function is not JSON: ${toError(error).message}` };
    }
  }

  #failure(error: unknown): TurnEnd {
    this.#thrown = error;
    const node = nodeOf(error);
    return { kind: "failed", error: toError(error).message || toError(error).name, ...(node === undefined ? {} : { node }) };
  }

  #finish(end: TurnEnd): void {
    if (!this.#isTurn) this.#strays = "It ended after it had waited for something that is not a command.";
    this.#end ??= end;
  }

  /** Everything that follows from a result runs before the next turn of the event loop. */
  #untilItWaits(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

function blocked(node: number, recorded: string, now: string): TurnEnd {
  const error = `The code does not match the journal at command ${node}: the journal has ${recorded}, ${now}.`;
  return { kind: "blocked", error };
}

/**
 * Marks a promise as handled. A function may start two steps and await the first one only later; when that one fails before, Node finds a rejection
 * without a handler and ends the process, with all functions of this worker.
 */
export function handled(promise: Promise<unknown>): void {
  promise.catch(() => {});
}

/** A side effect holds the turn until it ends, so the result of a command would never reach it. */
function commandInside(local: string, text: string): LongshoreError {
  const todo = "call w outside of w.local(), and pass its results in";
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `The side effect ${local} asks for ${text}, which it cannot wait for: ${todo}.`);
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** The command whose error this is, also behind causes. */
function nodeOf(error: unknown): number | undefined {
  let link: unknown = error;
  for (let depth = 0; depth < 10 && link instanceof Error; depth++, link = link.cause) if (link instanceof StepError) return link.node;
  return undefined;
}

/** The error for a function that waits for something else than a command. */
export function waitsElsewhere(name: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_BAD_DEFINITION",
    `The function ${name} waits for something that is not a command, such as fetch() or setTimeout(): put it into w.local(name, fn), or use w.sleep().`,
  );
}
