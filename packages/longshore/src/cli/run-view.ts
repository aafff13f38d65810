// The view of a run in a terminal: a line per step with its state, its time and its last log line. For files and pipes: a line per change.

import { formatDuration } from "../core/duration.ts";
import { isRunOpen } from "../engine/run/run.ts";
import type { Run, Step } from "./api.ts";
import { isStuck } from "./manual-states.ts";
import { selectSteps } from "./step-selection.ts";
import { fit, oneLine, type Paint, pad, printable, type Style, widthOf } from "./terminal.ts";
import { timeText } from "./time-text.ts";
import type { RunView } from "./watch-run.ts";

interface Look {
  readonly mark: string;
  readonly word: string;
  readonly style: Style;
}

const stepLooks: Readonly<Record<Step["state"], Look>> = {
  waiting: { mark: "·", word: "waits", style: "dim" },
  queued: { mark: "○", word: "queued", style: "yellow" },
  sleeping: { mark: "◇", word: "sleeps", style: "dim" },
  awaiting: { mark: "◇", word: "waits", style: "dim" },
  offered: { mark: "○", word: "offered", style: "yellow" },
  held: { mark: "●", word: "running", style: "cyan" },
  cancelling: { mark: "●", word: "stopping", style: "yellow" },
  done: { mark: "✓", word: "done", style: "green" },
  failed: { mark: "✗", word: "failed", style: "red" },
  cancelled: { mark: "✗", word: "cancelled", style: "red" },
  skipped: { mark: "–", word: "skipped", style: "dim" },
};

export const runStyles: Readonly<Record<Run["state"], Style>> = {
  running: "cyan",
  paused: "yellow",
  blocked: "red",
  succeeded: "green",
  failed: "red",
  cancelled: "red",
  "timed-out": "red",
};

/** The state of a run in words. Until the delay of a run has passed, the run sleeps. */
function stateText({ state, startAt }: Pick<Run, "state" | "startAt">, now: number): string {
  return startAt === null || state !== "running" ? state : `sleeping until ${timeText(startAt, now)}`;
}

/** What a run waits for that no worker does, such as a delay or a signal. Undefined for other runs. */
export function waitText(run: Pick<Run, "state" | "startAt" | "waiting">, now: number): string | undefined {
  const { state, startAt, waiting } = run;
  if (startAt !== null && state === "running") return stateText(run, now);
  if (waiting?.reason === "sleeping" && waiting.at !== undefined) return `sleeping until ${timeText(waiting.at, now)}`;
  return waiting?.reason === "signal" || waiting?.reason === "turn" || isStuck(waiting) ? waiting.text : undefined;
}

/** An internal definition has a name with a leading dot and a hash, which are not shown to people. */
export function titleOf({ workflow }: Pick<Run, "workflow">): string {
  return workflow.startsWith(".") ? workflow.slice(1).replace(/\+[0-9a-f]{12,}$/, "") : workflow;
}

const wordWidth = 9;
const timeWidth = 7;

export interface RunFrame {
  readonly now: number;
  readonly width: number;
  /** The maximum number of lines. Default: as many as there are. */
  readonly rows?: number;
  /** Further lines below a step. */
  readonly below?: (step: Step) => readonly string[];
  /** True where a line may be wrapped: errors are not cut, because the most important word is often the last one. */
  readonly wholeErrors?: boolean;
  readonly paint: Paint;
}

/**
 * The steps in their state at `now`, each on a line of at most `width` columns. When they need more than `rows` lines, failed and running
 * steps are shown, and the last line counts the others.
 */
export function renderRun({ run, steps }: RunView, frame: RunFrame): string[] {
  const { now, paint, rows = Infinity } = frame;
  const idWidth = Math.max(...steps.map((step) => step.id.length), 4);
  const ended = !isRunOpen(run.state);
  const head = `${paint("bold", titleOf(run))}  ${paint(runStyles[run.state], stateText(run, now))}  ${formatDuration((run.endedAt ?? now) - run.createdAt)}  ${paint("dim", run.id)}`;
  const linesOf = (step: Step) => [...stepLines(step, { ...frame, idWidth, ended }), ...(frame.below?.(step) ?? [])];
  const lines = steps.flatMap(linesOf);
  if (lines.length < rows) return [head, ...lines].map(printable);
  // The head and the counts take a line each.
  const { shown, left } = selectSteps(steps, rows - 2, (step) => linesOf(step).length);
  const counts = fit(`… and ${countsOf(left, ended)}`, frame.width);
  return [head, ...shown.flatMap(linesOf), paint("dim", counts)].map(printable);
}

function stepLines(step: Step, frame: RunFrame & { idWidth: number; ended: boolean }): string[] {
  const { now, width, paint, idWidth, ended, wholeErrors = false } = frame;
  const look = lookOf(step, ended);
  const time = step.startedAt === null ? "" : formatDuration((step.endedAt ?? now) - step.startedAt);
  const start = `${paint(look.style, look.mark)} ${pad(step.id, idWidth)}  ${paint(look.style, pad(look.word, wordWidth))}  ${time.padStart(timeWidth)}  `;
  const hasWhole = wholeErrors && (step.error ?? step.lastError) != null;
  const room = hasWhole ? Infinity : width - widthOf(start);
  const line = room < 4 ? start.trimEnd() : `${start}${noteOf(step, { room, now, paint })}`.trimEnd();
  return [line, ...deadLetterLines(step).map((text) => paint("red", fit(`    ${text}`, width)))];
}

/** `150 done, 3 running, 20 waiting`. */
function countsOf(steps: readonly Step[], ended: boolean): string {
  const counts = new Map<string, number>();
  for (const step of steps) {
    const { word } = lookOf(step, ended);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return [...counts].map(([word, count]) => `${count} ${{ waits: "waiting", sleeps: "sleeping" }[word] ?? word}`).join(", ");
}

/** The changes between two views, one line each. `before` is absent for the first view. */
export function renderChanges(before: RunView | undefined, after: RunView, paint: Paint, now: number = Date.now()): string[] {
  const lines: string[] = [];
  if (before === undefined) lines.push(`${titleOf(after.run)} ${after.run.id}`);
  const earlier = new Map((before?.steps ?? []).map((step) => [step.id, step]));
  for (const step of after.steps) {
    const old = earlier.get(step.id);
    const { waiting } = step;
    const moved = old?.state !== step.state || old.attempt !== step.attempt;
    if (moved && step.state !== "waiting") lines.push(changeLine(step, after.run, { now, paint }));
    else if (step.lastLine && step.lastLine !== old?.lastLine) lines.push(`  ${step.id}: ${oneLine(step.lastLine)}`);
    if (isStuck(waiting) && waiting.reason !== old?.waiting?.reason)
      lines.push(`  ${step.id} ${paint("yellow", "waits")}: ${oneLine(waiting.text)}`);
    const shown = new Set(old === undefined ? [] : deadLetterLines(old));
    for (const text of deadLetterLines(step)) if (!shown.has(text)) lines.push(`  ${step.id}: ${paint("red", oneLine(text))}`);
  }
  const { state, createdAt } = after.run;
  const word = stateText(after.run, createdAt);
  if ((before === undefined ? "running" : stateText(before.run, createdAt)) !== word) {
    const took = isRunOpen(state) ? "" : ` after ${formatDuration(durationOf(after.run))}`;
    lines.push(`${titleOf(after.run)} ${paint(runStyles[state], word)}${took}`);
  }
  return lines.map(printable);
}

/** The dead letters of a step: one line for each, and a last line that counts those that are not shown. */
function deadLetterLines({ deadLetters }: Step): string[] {
  if (deadLetters === undefined) return [];
  const lines = deadLetters.first.map(({ uid, reason, error, tries }) => {
    const why = error === null || error === "" ? "" : `: ${error}`;
    return `dead letter ${uid}: ${reason} after ${tries === 1 ? "1 try" : `${tries} tries`}${why}`;
  });
  const more = deadLetters.total - lines.length;
  return more === 0 ? lines : [...lines, `and ${more} more dead letters`];
}

function changeLine(step: Step, run: Run, { now, paint }: { now: number; paint: Paint }): string {
  const look = lookOf(step, !isRunOpen(run.state));
  const took = step.endedAt !== null && step.startedAt !== null ? ` after ${formatDuration(step.endedAt - step.startedAt)}` : "";
  const note = step.error ?? awaitedBy(step, now) ?? nextTryOf(step) ?? step.lastLine ?? "";
  return `${paint(look.style, look.mark)} ${step.id} ${look.word}${took}${triesOf(step)}${note === "" ? "" : `: ${oneLine(note)}`}`;
}

function lookOf(step: Step, ended: boolean): Look {
  if (step.state === "waiting" && ended) return { ...stepLooks.waiting, word: "not run" };
  if (step.waiting?.reason === "signal") return { mark: "◇", word: "waits", style: "yellow" };
  if (step.waiting?.reason === "sleeping") return { mark: "◇", word: "sleeps", style: "dim" };
  if (step.waiting?.reason === "record") return { mark: "◇", word: "waits", style: "dim" };
  if (step.state === "queued" && step.attempt > 1) return { mark: "↻", word: "retries", style: "yellow" };
  return stepLooks[step.state];
}

/** What a step waits for while no worker has it: a signal or a time. Undefined for every other step. */
function awaitedBy({ waiting }: Step, now: number): string | undefined {
  if (waiting?.reason === "signal" || waiting?.reason === "record") return waiting.text;
  return waiting?.reason === "sleeping" && waiting.at !== undefined ? `sleeping until ${timeText(waiting.at, now)}` : undefined;
}

/** Log lines and errors are untrusted text. They are cut before colours are added, so that no escape sequence is split. */
function noteOf(step: Step, { room, now, paint }: { room: number; now: number; paint: Paint }): string {
  if (step.state === "waiting") return paint("dim", fit(step.after.length === 0 ? "" : `after ${step.after.join(", ")}`, room));
  const tries = triesOf(step).trimStart();
  const stuck = isStuck(step.waiting) ? step.waiting.text : null;
  const style =
    stuck !== null || step.lastError !== undefined || (step.error !== null && step.state === "queued")
      ? "yellow"
      : step.error === null
        ? "dim"
        : "red";
  const text = stuck ?? step.error ?? awaitedBy(step, now) ?? nextTryOf(step) ?? step.lastLine ?? "";
  const rest = fit(text, room - (tries === "" ? 0 : tries.length + 2));
  return [paint("yellow", tries), step.state === "held" ? rest : paint(style, rest)].filter((text) => text !== "").join("  ");
}

/** When a failed step is retried, and its error. */
function nextTryOf({ waiting, lastError }: Step): string | undefined {
  if (lastError === undefined) return undefined;
  return waiting === undefined ? lastError : `${waiting.text}; ${lastError}`;
}

/** A skipped step has no attempt in the current execution of its run. Its attempt number comes from an earlier execution. */
function triesOf(step: Step): string {
  return step.attempt > 1 && step.state !== "skipped" ? ` (try ${step.attempt})` : "";
}

function durationOf(run: Run): number {
  return (run.endedAt ?? run.createdAt) - run.createdAt;
}
