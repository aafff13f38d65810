// Decides about a run whose plan grows: a durable function. Its only planned node, the driver, is a task. Each hold of that task is one
// turn of the function on a worker; the report of a turn contains commands, and command number n becomes node n of the run. When a command
// has its result, the result gets the next number, and the driver is queued for another turn with it.
//
// Between two turns the driver waits without a lane. A result that arrives during a turn waits: for the next turn, or for the worker's next
// report of commands, whose reply contains it (`TurnNews`).
//
// A command is never started twice in one life of the run: a report that repeats a command changes nothing. A retry forgets commands that
// did not succeed, and those that the function gave after the failure (driven-journal.ts). The worker replays what is left, and gives the
// others again.

import type { Json } from "../../core/json/json.ts";
import { writeExact } from "../../core/json/json-exact.ts";
import { type Command, commandText, functionLane, journalMax, workerOf } from "../../core/turn.ts";
import { keptError } from "../board/report-texts.ts";
import type { Lane } from "../board/task.ts";
import { definesOf, waitPlacement, wakeAtOf, workPlacement } from "./command-placement.ts";
import type { Decision, Frontier, RunEvent } from "./decide.ts";
import { Draft, type Rules } from "./draft.ts";
import type { JournalChange, NextJournal } from "./driven-journal.ts";
import { NewResults, resultsCharsMax } from "./driven-results.ts";
import { beginningText, type DriverState, type Failing, newsText, stateOf, turnAgain } from "./driven-state.ts";
import { driverRetry } from "./driver-retry.ts";
import { JournalSize } from "./journal-size.ts";
import type { TaskNode } from "./plan.ts";
import { type NextTry, nextTry, tryOnce } from "./retry.ts";
import { refuseLarge } from "./shown-values.ts";

/** How long a turn waits for the worker that has the function in memory. After that, any worker may take it. */
const claimMs = 2_000;
/** The turn waits for that worker only when the worker has polled within this time. */
const polledMs = 40_000;
/** Events that mean nothing to a function: it has no parts, no joins, and no step that is reached later. */
const ignored: ReadonlySet<string> = new Set(["part", "go-on", "skip", "reopen", "wait-again", "unfollowed"]);

export function decideDriven(rules: Rules, frontier: Frontier, event: RunEvent): Decision {
  const draft = new Draft(rules, frontier, event.now);
  const driven = new Driven(draft, rules.functionChars);
  const next = ignored.has(event.kind) ? null : driven.react(event);
  const { news } = driven;
  return news === null ? draft.answer([], next) : { ...draft.answer([], next), news };
}

class Driven {
  readonly #draft: Draft;
  readonly #driver: TaskNode;
  readonly #state: DriverState;
  readonly #size: JournalSize;
  readonly #news: NewResults;
  /** Commands that this decision has started: they have no record yet. */
  readonly #begun = new Set<number>();
  /** The reply to a worker whose turn continues. */
  news: string | null = null;

  constructor(draft: Draft, functionChars: number | undefined) {
    this.#draft = draft;
    this.#driver = draft.plan.nodes[0] as TaskNode;
    this.#state = stateOf(draft.run);
    this.#size = new JournalSize(this.#state, functionChars);
    this.#news = new NewResults(draft, this.#state);
  }

  react(event: RunEvent): NextTry | null {
    switch (event.kind) {
      case "start":
        this.#begin();
        break;
      case "turn":
        this.#turn(event);
        break;
      case "done":
        this.#size.add(event.chars);
        this.#settle(event.node, undefined);
        break;
      case "ended":
        if (event.node === 0) this.#end("cancelled", event.error);
        else this.#settle(event.node, { state: event.state === "cancelled" ? "cancelled" : "failed", error: event.error, attempt: 0 });
        break;
      case "closed":
        return event.node === 0 ? this.#closeDriver(event) : this.#close(event);
      case "cancel":
        this.#end("cancelled", event.error ?? event.parent?.error ?? this.#draft.run.error);
        break;
      case "timeout":
        this.#end("timed-out", "the run took too long");
        break;
      case "pause":
        if (this.#draft.run.state === "running") this.#draft.update({ state: "paused" });
        break;
      case "resume":
        if (this.#draft.run.state === "paused") this.#draft.update({ state: "running", ...this.#draft.counted() });
        break;
      case "retry":
        this.#retry(this.#state.failedAt);
        break;
      case "rerun":
        this.#retry(event.node);
        break;
      case "restart":
        this.#restart();
        break;
    }
    return null;
  }

  #begin(): void {
    this.#draft.change({ kind: "post", node: 0, ordinal: 0, input: "null" });
    this.#draft.enter();
    this.#queueTurn();
    this.#save();
  }

  #turn({ report, isOver, isAnswered }: RunEvent & { kind: "turn" }): void {
    this.#state.by = report.by;
    if (report.set !== undefined) this.#show(report.set);
    for (const command of report.commands) this.#command(command);
    const { end, received } = report;
    if (received !== undefined) this.#news.received(received);
    if (this.#size.error !== undefined && isOver && end?.kind !== "done" && end?.kind !== "continued")
      return this.#end("failed", this.#size.error);
    if (end === undefined) {
      if (!isOver && !isAnswered) this.#tellNews(received);
      else if (isOver && this.#draft.run.state !== "blocked") this.#goOn(report.more === true);
    } else if (end.kind === "done") return this.#end("succeeded", null, writeExact(end.output));
    else if (end.kind === "failed") {
      this.#state.failedAt = end.node;
      return this.#end("failed", end.error);
    } else if (end.kind === "blocked") this.#block(end.error);
    else return this.#continueAs(end.input);
    this.#save();
  }

  #show(values: { readonly [key: string]: Json }): void {
    refuseLarge(this.#draft.setVariables(values));
  }

  /** Sends the new results to the turn that is in progress. A repeated report gets none: the worker reads them from the journal. */
  #tellNews(received: number | undefined): void {
    const state = this.#state;
    const { run, now } = this.#draft;
    if (received === undefined) return;
    if (run.state !== "running" || this.#size.error !== undefined) {
      this.news = newsText({ upTo: received, now, stop: true });
      return;
    }
    const results = received === state.sent ? this.#news.texts() : [];
    if (results === null) return;
    this.#news.sent();
    this.news = newsText({ upTo: state.place, now, results });
  }

  #goOn(more: boolean): void {
    if (more || this.#state.place > this.#state.sent) this.#queueTurn();
    else if (this.#draft.run.left === 0) this.#block("the function waits for nothing that the server knows");
    else this.#state.waiting = true;
  }

  /** Stops the function until its run is retried, usually with other code. Its results stay, and its open commands continue. */
  #block(error: string): void {
    this.#draft.update({ state: "blocked", error: keptError(error) });
    this.#state.waiting = true;
  }

  #command(command: Command): void {
    const { node } = command;
    const { run } = this.#draft;
    if (node > journalMax) return this.#block(`The function gave command ${node}, a run has at most ${journalMax}: use continueAs.`);
    // A command with a known number is usually a repeated report, and changes nothing. It is new after a retry that made it void, or when a
    // side effect ended after later commands.
    if (this.#begun.has(node) || (node <= run.recorded && !this.#isVoid(node))) return;
    if (this.#draft.lacks || this.#size.error !== undefined) return;
    this.#begun.add(node);
    this.#draft.update({ recorded: Math.max(run.recorded, node), left: run.left + 1 });
    this.#draft.enter();
    this.#start(command);
    const { place } = command;
    if (place !== undefined && place !== this.#state.place)
      this.#block(
        `The function received the result of command ${node} as number ${place}, it has number ${this.#state.place} in the journal.`,
      );
  }

  #isVoid(node: number): boolean {
    const record = this.#draft.frontier.record(node);
    if (record === undefined) this.#draft.need.records.push(node);
    return record === null || record?.state === "forgotten";
  }

  #start(command: Command): void {
    const { node, kind, name, after, shown, totalMs } = command;
    const input = writeExact(command.input ?? null);
    this.#size.add(input.length);
    const step = { id: shown ?? (name === "" ? kind : name), command: `${after} ${commandText(command)}` };
    // Its worker could not give this command: for example, the input is too large.
    if (kind === "local" || kind === "version" || command.error !== undefined) return this.#record(command, step, input);
    const base = { kind: "post" as const, node, ordinal: 0, input, step };
    const placement = kind === "step" ? workPlacement(command) : waitPlacement(totalMs);
    if (kind === "step") {
      const refused = this.#draft.reserved.refusedPost(placement);
      if (refused !== undefined) return this.#record({ ...command, error: refused }, step, input);
    }
    if (kind === "sleep") this.#draft.change({ ...base, placement, wakeAt: wakeAtOf(command, this.#draft.now) });
    else if (kind === "signal") this.#draft.change({ ...base, placement, signal: name });
    else this.#draft.change({ ...base, placement });
    if (kind === "run") this.#draft.startChild(node, name, input, this.#attemptOf(node), definesOf(command));
  }

  /** In a later life of the run, the command may have had attempts before. The id of a child run contains the number of the attempt. */
  #attemptOf(node: number): number {
    const record = this.#draft.run.retries === 0 ? null : this.#draft.frontier.record(node);
    if (record === undefined) this.#draft.need.records.push(node);
    return record == null ? 0 : record.attempt + 1;
  }

  /** A command that has its result already. The worker knows the result, so it is not sent back. */
  #record({ node, output, error, at }: Command, step: { id: string; command: string }, input: string): void {
    const ending =
      error === undefined
        ? { state: "done" as const, error: null, output: writeExact(output ?? null) }
        : { state: "failed" as const, error: keptError(error), fault: "final" as const };
    this.#size.add((ending.output ?? ending.error ?? "").length);
    this.#news.number(node);
    this.#news.knows(node);
    this.#draft.change({ kind: "record", node, ordinal: this.#state.place, step, input, ...ending, ...(at === undefined ? {} : { at }) });
  }

  /** A command has its result. `failing`: how it ended, when its row does not show that yet. */
  #settle(node: number, failing: Failing | undefined): void {
    this.#news.number(node);
    this.#draft.change({ kind: "number", node, ordinal: this.#state.place });
    // The run fails at once, and its other open commands and the driver end with it.
    if (this.#size.error !== undefined) return this.#end("failed", this.#size.error, undefined, "cancelled");
    if (this.#state.waiting && this.#draft.run.state !== "blocked") this.#queueTurn({ node, failing });
    this.#save();
  }

  #close(event: RunEvent & { kind: "closed" }): NextTry {
    const next = nextTry(event.policy ?? tryOnce, event, event.closure, event.now, event.random);
    if (next.again) return next;
    this.#settle(event.node, { state: "failed", error: next.error, attempt: event.attempt ?? 0, closure: event.closure });
    return { ...next, ordinal: this.#state.place };
  }

  /**
   * The turn was lost, or the worker with the function in memory did not take it. Any worker may take it now; others replay the journal.
   */
  #closeDriver(event: RunEvent & { kind: "closed" }): NextTry {
    const { closure } = event;
    const lane = this.#driver.lanes[0] as Lane;
    if (closure.kind === "timed-out" && closure.which === "claimBy") {
      const { failures, lost } = event;
      return { again: true, dueAt: event.now, failures, lost, lane };
    }
    const next = nextTry(driverRetry, event, closure, event.now, event.random);
    if (next.again) {
      const record = this.#draft.frontier.record(0);
      if (record === undefined) this.#draft.need.records.push(0);
      return record == null ? next : { ...next, lane, input: turnAgain(this.#draft.run, record.input) };
    }
    this.#end("failed", next.error);
    return next;
  }

  /**
   * Queues the next turn with all new results. `current`: the command that ends in this decision, so its row does not show the result yet.
   */
  #queueTurn(current?: { node: number; failing: Failing | undefined }): void {
    const { run, now } = this.#draft;
    const state = this.#state;
    const results = this.#news.texts(current);
    if (results === null) return;
    const first = state.turn === 0 && run.input.length <= resultsCharsMax;
    const head = JSON.stringify({
      turn: ++state.turn,
      life: run.retries,
      after: state.sent,
      upTo: state.place,
      by: state.by,
      goesOn: true,
    });
    const given = first ? `,${beginningText(run, state)}` : "";
    const input = `${head.slice(0, -1)},"commands":${run.recorded},"results":[${results.join(",")}]${given}}`;
    this.#news.sent();
    state.waiting = false;
    const { lanes } = this.#driver;
    const general = lanes[0] as Lane;
    const own = state.by === null ? [] : [{ name: functionLane(this.#driver.id, workerOf(state.by)), labels: general.labels }];
    this.#draft.change({ kind: "turn", lanes: [...own, general], input, polledSince: now - polledMs, claimMs });
  }

  #end(state: "succeeded" | "failed" | "cancelled" | "timed-out", error: string | null, output?: string, driver = state): void {
    // The driver waits without a lane after its last turn, so it is ended here, in the state of the function.
    if (driver === "succeeded" || driver === "failed")
      this.#draft.change({ kind: "settle", node: 0, state: driver === "succeeded" ? "done" : "failed", error, output: null });
    this.#draft.change({ kind: "cancel-open" });
    this.#state.waiting = false;
    this.#save();
    this.#draft.close(state, error, output);
  }

  /** Another life with an empty journal. */
  #continueAs(input: Json): void {
    this.#draft.update({ input: writeExact(input) });
    this.#restart();
  }

  #restart(): void {
    const next = this.#nextJournal({ kind: "empty", sent: this.#state.sent });
    if (next === undefined) return;
    this.#draft.forgetAll(next.void, next.returned);
    this.#state.pass = (this.#state.pass ?? 0) + 1;
    this.#state.startedAt = this.#draft.now;
    this.#state.chars = 0;
    this.#revive(0);
  }

  /** Replays the function with what it keeps: see driven-journal.ts. */
  #retry(from: number | undefined): void {
    if (this.#draft.run.state === "blocked") return this.#unblock();
    const next = this.#nextJournal({ kind: "keep", from });
    if (next === undefined) return;
    this.#draft.forgetAll(next.void);
    for (const node of next.unnumbered) this.#draft.change({ kind: "number", node, ordinal: ++this.#state.place });
    for (const command of next.unrecorded) this.#start(command);
    this.#revive(next.recorded);
  }

  #unblock(): void {
    this.#draft.update({ state: "running", error: null, ...this.#draft.counted() });
    this.#state.by = null;
    this.#queueTurn();
    this.#save();
  }

  #nextJournal(change: JournalChange): NextJournal | undefined {
    const { frontier, need } = this.#draft;
    const next = frontier.journal(change);
    if (next === undefined) {
      need.all = true;
      need.journal = change;
    } else this.#draft.spendOnRecords(next.void.length);
    return next;
  }

  #revive(recorded: number): void {
    const state = this.#state;
    Object.assign(state, { turn: recorded === 0 ? 0 : 1, sent: state.place, news: [], by: null, waiting: false });
    state.failedAt = undefined;
    this.#draft.forget(0);
    this.#draft.revive({ backlog: null, skips: null, recorded, left: 0 });
    this.#begin();
  }

  #save(): void {
    this.#draft.update({ settings: JSON.stringify(this.#state) });
  }
}
