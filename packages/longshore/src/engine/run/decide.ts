// Decides what follows from an event in a run. Pure: no clock, no randomness, no I/O; `now` and `random` come with the event. The result is
// a list of changes to rows, or `need`: rows that must be loaded before it is called again. It visits only the nodes that an event touches,
// so the ten-thousandth step costs as much as the tenth. This file says what each event means; propagation.ts has one decision in progress.

import type { Json } from "../../core/json/json.ts";
import type { TurnReport } from "../../core/turn.ts";
import { cancelledAlone, type EndState, type Fault, type Lane, type TaskRow } from "../board/task.ts";
import type { LongWork, NewDefinition } from "./dialect.ts";
import type { DocumentKey } from "./documents.ts";
import type { Rules } from "./draft.ts";
import type { JournalChange, NextJournal } from "./driven-journal.ts";
import { decideDriven } from "./driver.ts";
import type { Placement, Plan, PlanNode, RetryPolicy } from "./plan.ts";
import { Propagation } from "./propagation.ts";
import type { RestartOptions, RestartPlan } from "./restart-plan.ts";
import { type Closure, errorOf, faultOf, type NextTry, nextTry, overdueOf, tryOnce } from "./retry.ts";
import type { Join, Message, Rest, Run, Step } from "./run.ts";

/** `streamed`: the first part of the step was announced before. A step that waited only for this part has already started. */
export type RunEvent = { now: number; random: number } & (
  | { kind: "start" }
  /** A step has produced its first part, and some node waits for that. */
  | { kind: "part"; node: number }
  /** The rest of an earlier decision. */
  | { kind: "go-on"; rest: Rest }
  /** A step has its result. `chars`: its length, which earlier versions did not store. */
  | { kind: "done"; node: number; chars?: number; streamed?: boolean }
  /**
   * A durable function has reported a turn or, when `isOver` is false, commands in the middle of a turn. `isAnswered`: the worker has its
   * reply already, without new results.
   */
  | { kind: "turn"; node: number; report: TurnReport; isOver: boolean; isAnswered?: true }
  /** An attempt of a step closed without a result. `policy` is the task's own retry policy; without it the plan's applies. */
  | ({ kind: "closed"; node: number; streamed?: boolean; closure: Closure; policy?: RetryPolicy | null } & Tries)
  /** A step ended in another way: its child run did not succeed, or a caller cancelled the step alone. */
  | { kind: "ended"; node: number; streamed?: boolean; state: EndState; error: string | null; fault?: Fault | null }
  /** `parent`: the run that waited for this one has ended, with this error. */
  | { kind: "cancel"; error?: string | null; parent?: { error: string | null } }
  | { kind: "timeout" }
  /** The successor of this failed run could not be started. */
  | { kind: "unfollowed"; error: string }
  /** Retry what did not succeed and everything after it; keep the rest. */
  | { kind: "retry" }
  /** The same, starting with this step in any state, with another input if there is one (JSON text). */
  | { kind: "rerun"; node: number; input?: string }
  /** Start again from the beginning. The run's input may have been changed before. */
  | { kind: "restart" }
  /** The child run of this step is alive again. */
  | { kind: "reopen"; node: number }
  /** The same, in an open run that has already continued with the steps after this one. Those that have started continue. */
  | { kind: "wait-again"; node: number }
  | { kind: "pause" }
  | { kind: "resume" }
  /** Skip this step when the run reaches it, and continue as if it had this output (JSON text). */
  | { kind: "skip"; node: number; input: string; output: string }
);

/** How often the step was tried before this attempt closed, and since when. */
export interface Tries {
  failures: number;
  lost: number;
  /** The number of the attempt that closed. */
  attempt?: number;
  /** When the task was first queued. */
  postedAt?: number;
  /** JSON text of the attempt's output although it failed. */
  output?: string | null;
}

/** The rows loaded so far. `undefined` means not loaded yet; `null` means there is no such row. */
export interface Frontier {
  readonly run: Run;
  join(node: number): Join | null | undefined;
  output(node: number): Json | undefined;
  /** Includes forgotten records: they contain the number of the next attempt. */
  record(node: number): TaskRow | null | undefined;
  /** Every record of the run; only loaded on request. */
  records(): ReadonlyMap<number, TaskRow> | undefined;
  /** The steps that start again in another life of the run; computed on request, once for a decision. */
  restart(options: RestartOptions): RestartPlan | undefined;
  /** What another life of a durable function keeps; computed in the same way. */
  journal(change: JournalChange): NextJournal | undefined;
  document(kind: string, name: string): Json | undefined;
  /** The result of long work; throws what the work has thrown. */
  made(key: string): Json | undefined;
  /** Characters of the output that was loaded; 0 when no output was loaded. */
  chars(node: number): number;
}

export interface Need {
  joins: number[];
  outputs: number[];
  records: number[];
  /** Every record is needed. */
  all: boolean;
  restart: RestartOptions | null;
  journal: JournalChange | null;
  documents: DocumentKey[];
  works: LongWork[];
}

export type Change =
  /**
   * Post a step's work, or a record that waits for something else when it has no lane. `step` describes a command of a durable function,
   * which is in no plan.
   */
  | {
      kind: "post";
      node: number;
      ordinal: number;
      input: string;
      placement?: Placement;
      /** For a record that waits: when it ends by itself, and the name of the signal that ends it. Default: the id of its step. */
      wakeAt?: number;
      signal?: string;
      step?: PostedStep;
    }
  /** Queue the driver of a durable function: on the first of these lanes that was polled since then, else on the last. */
  | { kind: "turn"; lanes: readonly Lane[]; input: string; polledSince: number; claimMs: number }
  /** The result of a command has this number. */
  | { kind: "number"; node: number; ordinal: number }
  /** A step that ended without being posted. `at`: when it ended, if that was not now. */
  | ({ kind: "record"; node: number; ordinal: number; step?: PostedStep; at?: number } & Recorded)
  /** A waiting record has ended. */
  | { kind: "settle"; node: number; state: EndState; error: string | null; output: string | null; fault?: Fault }
  /** A record that had ended waits again. `passed`: the run has already continued after it, and does not do so a second time. */
  | { kind: "reopen"; node: number; passed: boolean }
  | { kind: "join"; node: number; left: number; begun: boolean; missed: number }
  | { kind: "run"; run: Run }
  | { kind: "message"; message: Message }
  /** The record of a step is void: the step will be started again. */
  | { kind: "forget"; node: number }
  /** The same for very many. `returned`: the signals that these steps took are kept again. */
  | { kind: "forget-all"; steps: readonly Step[]; returned: readonly number[] }
  /** Store a longer definition, which the run has from the next decision on. */
  | { kind: "define"; definition: NewDefinition }
  /** Cancel all open tasks of the run. */
  | { kind: "cancel-open" };

/** The id of a step that is in no plan, and its command. */
export interface PostedStep {
  id: string;
  command: string;
}

/** A record that ends at once. Texts are JSON. */
export interface Recorded {
  state: EndState;
  error: string | null;
  input?: string;
  output?: string | null;
  fault?: Fault;
}

/** `news`: the reply to a durable function in the middle of its turn: JSON text of a `TurnNews`. */
export type Decision = { need: Need } | { changes: Change[]; next: NextTry | null; news?: string };

export function decide(rules: Rules, frontier: Frontier, event: RunEvent): Decision {
  const { plan } = rules;
  if (plan.driven) return decideDriven(rules, frontier, event);
  const propagation = new Propagation(rules, frontier, event.now);
  const next = react(propagation, plan, event);
  return propagation.answer(next);
}

function react(propagation: Propagation, plan: Plan, event: RunEvent): NextTry | null {
  if ("streamed" in event && event.streamed) propagation.streamed(event.node);
  switch (event.kind) {
    case "closed":
      return close(propagation, plan, event);
    case "start":
      propagation.begin();
      break;
    case "go-on":
      propagation.goOn(event.rest);
      break;
    case "part":
      propagation.part(event.node);
      break;
    case "done":
      propagation.succeed(event.node);
      break;
    case "ended":
      propagation.end(event.node, {
        state: event.state,
        error: event.error,
        fault: event.fault ?? (event.state === "cancelled" ? cancelledAlone : null),
        attempt: 0,
      });
      break;
    case "cancel":
      propagation.cancel(event.error ?? null, event.parent);
      break;
    case "timeout":
      propagation.timeOut();
      break;
    case "unfollowed":
      propagation.unfollowed(event.error);
      break;
    case "retry":
      propagation.again({});
      break;
    case "rerun":
      propagation.again({ from: event.node, input: event.input });
      break;
    case "reopen":
      propagation.again({ reopen: event.node });
      break;
    case "wait-again":
      propagation.waitAgain(event.node);
      break;
    case "restart":
      propagation.restart();
      break;
    case "pause":
      propagation.pause();
      break;
    case "resume":
      propagation.resume();
      break;
    case "skip":
      propagation.skip(event.node, event.input, event.output);
      break;
  }
  return null;
}

function close(propagation: Propagation, plan: Plan, event: RunEvent & { kind: "closed" }): NextTry | null {
  const node = plan.nodes[event.node] as PlanNode;
  const policy = event.policy ?? node.retry ?? tryOnce;
  const attempt = event.attempt ?? 0;
  const next = nextTry(policy, event, event.closure, event.now, event.random);
  const fault = faultOf(event.closure);
  const overdue = overdueOf(event.closure);
  if (fault === "timed-out" && policy.timeoutEndsRun) {
    const error = errorOf(event.closure);
    propagation.endsRun(event.node, { state: "failed", error, fault, overdue, attempt, output: event.output });
    return { again: false, error, failures: next.failures, lost: next.lost };
  }
  if (next.again) return propagation.tryAgain(event.node, next, attempt + 1);
  propagation.end(event.node, { state: "failed", error: next.error, fault, overdue, attempt, output: event.output });
  return next;
}
