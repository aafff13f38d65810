// One durable function in the memory of a worker. It gives commands and waits for their results. The same class runs a function for the
// first time, continues it in its next turns, and replays it from a journal. In a replay, a command that the journal has is compared with
// it and not given again.
//
// The function is deterministic between results. So after each result this class waits until the function itself waits again
// (`#untilItWaits`). Then it passes on the next one, in the order of their numbers.
//
// The result of a side effect gets the next number here while the server has no open command of the function: nothing else can have a
// result. The function receives it at once. Otherwise the server numbers it (core/turn.ts). A later side effect may depend on it, so that
// one is held back until the result is in the journal (`#held`).

import type { Json } from "../../core/json/json.ts";
import type { ValueSize } from "../../core/text-size.ts";
import { type Command, type CommandResult, commandText, type JournalEntry, type TurnEnd } from "../../core/turn.ts";
import { blocked, Continued, doneWith, failedWith } from "./function-end.ts";
import type { Asked, Beginning, Flush, LocalResult } from "./replay-parts.ts";
import { ServerTime } from "./server-time.ts";
import { SideEffects } from "./side-effects.ts";
import { StepError } from "./step-error.ts";
import { handled } from "./unawaited-promises.ts";
import { Unreported } from "./unreported-commands.ts";
import { tooLarge, type ValueLimit } from "./value-limit.ts";

interface Waiting {
  readonly command: Asked;
  resolve(output: Json): void;
  reject(error: Error): void;
}

export class FunctionReplay {
  readonly #journal: ReadonlyMap<number, JournalEntry>;
  readonly #isCheck: boolean;
  readonly #limit: ValueLimit | undefined;
  readonly #waiting = new Map<number, Waiting>();
  /** Commands that the journal does not have, in order, until they are reported. */
  readonly #fresh = new Unreported();
  /** Results of side effects that ran here, and of commands that are too large. The server has not numbered them yet. */
  readonly #own = new Map<number, LocalResult>();
  readonly #effects = new SideEffects();
  /** Side effects that have ended, and whose results have no numbers. */
  readonly #ended: Command[] = [];
  /** Side effects that begin when the results so far are in the journal. */
  #held: (() => void)[] = [];
  /** Commands whose results come from the server. */
  readonly #open = new Set<number>();
  readonly #serverTime: ServerTime;
  readonly #versions = new Map<string, number>();
  readonly #set: { [key: string]: Json } = {};
  #hasSet = false;
  #nodes = 0;
  #place: number;
  #now: number;
  #end: TurnEnd | null = null;
  #thrown: unknown;
  /** False outside of turns. A command that is given then follows a wait that is not allowed in a function. */
  #isTurn = false;
  #strays: string | null = null;
  readonly #lastRecorded: number;
  #foresees = false;
  /** True while the function receives results that it received in earlier turns. */
  isRepeating = false;

  constructor({ after, startedAt, journal, steady, isCheck = false, limit }: Beginning) {
    this.#limit = limit;
    this.#isCheck = isCheck;
    this.#place = after;
    this.#now = startedAt;
    this.#serverTime = new ServerTime(startedAt, steady);
    this.#journal = journal;
    this.#lastRecorded = Math.max(0, ...journal.keys());
  }

  /** The number of the newest result that the function has received. */
  get place(): number {
    return this.#place;
  }

  /** Results up to this number are received. Those that are missing belong to commands that a retry has made void. */
  skipTo(place: number): void {
    this.#place = Math.max(this.#place, place);
  }

  get now(): number {
    return this.#now;
  }

  /** True while the function repeats what it did before. */
  get isReplaying(): boolean {
    return this.isRepeating || this.#nodes < this.#lastRecorded;
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
    this.#effects.wake();
    let called: unknown;
    try {
      called = call();
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (!isPromise(called)) {
      const error = "The function given to workflow() returned without a promise: it must be async. For a static graph use graph().";
      this.#finish({ kind: "failed", error });
      return;
    }
    called.then(
      (output) => this.#finish(doneWith(output)),
      (error: unknown) => this.#fail(error),
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

  /**
   * Waits until the side effects of this turn have ended. `flush` reports commands: while side effects run, and before the next one begins.
   * `goesOn`: the function receives the results of side effects in this turn.
   */
  async settle(flush: Flush, goesOn = false): Promise<void> {
    await this.#untilItWaits();
    for (let stops = false; this.#end === null; ) {
      if (goesOn && !stops && (await this.#passOn())) continue;
      for (const command of this.#ended.splice(0)) this.#fresh.push(command);
      const isHeld = !stops && (this.#held.length > 0 || (goesOn && this.#fresh.unplaced > 0));
      if (this.#fresh.size > 0 && (isHeld || this.#effects.running > 0)) {
        const { results, stop, now } = await flush();
        this.#serverTime.learn(now);
        stops ||= stop;
        await this.receive(results);
        continue;
      }
      if (isHeld) for (const begin of this.#held.splice(0)) begin();
      else if (this.#effects.running === 0) break;
      else await this.#effects.next();
      await this.#untilItWaits();
    }
    this.#isTurn = false;
  }

  /** Returns the number of the step with this name, if the function waits for nothing else. */
  soleStep(shown: string): number | undefined {
    if (this.#waiting.size !== 1 || this.#open.size !== 1 || this.#end !== null || this.#strays !== null) return undefined;
    if (this.#fresh.size + this.#held.length + this.#effects.running + this.#ended.length > 0) return undefined;
    const [node] = this.#open as Set<number> & [number];
    const command = this.#waiting.get(node)?.command;
    return command?.kind === "step" && command.shown === shown ? node : undefined;
  }

  /**
   * Passes on a result that is not stored yet. Side effects that follow from it begin in a later turn. Returns the time at which the
   * function receives it. This is never before `since`, when the server handed the step out.
   */
  async foresee({ node, since, output }: { node: number; since: number; output: Json }): Promise<number> {
    this.#foresees = true;
    this.#serverTime.learn(since);
    const at = Math.max(this.#serverTime.now, this.#now);
    await this.receive([{ node, place: this.#place + 1, state: "done", at, output }]);
    this.#foresees = false;
    this.#isTurn = false;
    return at;
  }

  /**
   * Passes the result of one side effect on, when the next number is its own. False when there is none, or another result can come before
   * it.
   */
  async #passOn(): Promise<boolean> {
    if (this.#open.size > 0) return false;
    // The results of `version` are numbered as well. The function does not wait for them.
    if (this.#fresh.unplaced > 0) this.#fresh.place(() => ({ place: ++this.#place, at: this.#now }));
    const command = this.#ended.shift();
    if (command === undefined) return false;
    const placed = { ...command, place: this.#place + 1, at: this.#serverTime.now };
    this.#fresh.push(placed);
    this.#deliver({ node: placed.node, place: placed.place, at: placed.at, state: "done" });
    await this.#untilItWaits();
    return true;
  }

  /** Whether the function waits for a command. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0 || this.#fresh.size > this.#fresh.placed;
  }

  /** After a replay: the function must have given every command that the journal has. */
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

  /** The function has ended: drops everything that was not reported, except side effects whose results the function has received. */
  dropUnreceived(): void {
    if (this.#end?.kind === "continued") this.#fresh.clear();
    else this.#fresh.keepPlaced();
  }

  /** Whether one report has room for all commands. */
  isFit(max: number, size: ValueSize): boolean {
    return this.#fresh.isFit(max, size);
  }

  /** Takes at most `max` commands that have not been reported, and fewer when their values are large together; at least one. */
  takeCommands(max: number, size: ValueSize): Command[] {
    const taken = this.#fresh.take(max, size);
    for (const { node, place } of taken) if (place === undefined && this.#waiting.has(node)) this.#open.add(node);
    return taken;
  }

  get hasCommands(): boolean {
    return this.#fresh.size > 0;
  }

  /** Whether side effects begin in the next turn. */
  get isHeld(): boolean {
    return this.#held.length > 0;
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
    if (this.#journal.has(node)) this.#open.add(node);
    else this.#give({ ...command, node, after: this.#place });
    return this.#wait(node, command);
  }

  /** The journal has a command with a too large input as a failed command. So it fails in each replay, also when the limit has changed. */
  #give(command: Command): void {
    const { input, ...rest } = command;
    const error = input === undefined ? undefined : tooLarge(`the input of ${commandText(command)}`, input, this.#limit);
    if (error !== undefined) this.#own.set(command.node, { error });
    this.#fresh.push(error === undefined ? command : { ...rest, error });
  }

  /** Runs a side effect, unless the journal has its result. */
  local(name: string, run: () => Promise<LocalResult>): Promise<Json> {
    const command: Asked = { kind: "local", name };
    const node = this.#next(command);
    if (node === null) return new Promise<Json>(() => {});
    const result = this.#wait(node, command);
    if (this.#journal.has(node)) this.#open.add(node);
    if (this.#journal.has(node) || this.#isCheck) return result;
    const after = this.#place;
    const begin = () =>
      this.#effects.begin(name, run, (result) => {
        const made = this.#fitting(name, result);
        this.#own.set(node, made);
        this.#ended.push({ ...command, node, after, ...made });
      });
    if (this.#foresees || this.#held.length > 0 || this.#fresh.placed > 0) this.#held.push(begin);
    else this.#effects.ask(begin);
    return result;
  }

  #fitting(name: string, made: LocalResult): LocalResult {
    const error = "output" in made ? tooLarge(`the result of side effect ${name}`, made.output, this.#limit) : undefined;
    return error === undefined ? made : { error };
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
    this.#effects.refuseInside(text);
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
    this.#effects.wake();
    this.#place = place;
    this.#now = Math.max(this.#now, at);
    this.#serverTime.learn(at);
    this.#open.delete(node);
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

  #fail(error: unknown): void {
    this.#thrown = error;
    this.#finish(failedWith(error));
  }

  #finish(end: TurnEnd): void {
    if (!this.#isTurn) this.#strays = "It ended after it had waited for something that is not a command.";
    this.#end ??= end;
  }

  /** Everything that follows from a result runs before the next turn of the event loop. */
  #untilItWaits(): Promise<void> {
    return this.#effects.rest(() => this.#end === null);
  }
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
