// Compares the replies to workers and clients with what the server stored. A rule reports only violations that are certain. When no reply
// arrived, both outcomes are allowed. Lines about rows that retention may have removed are counted, but not checked.

import type { Address, ReadAddress, RecordedLine, RecordedWork } from "../core/recording.ts";
import type { TaskHistory } from "../engine/run/history.ts";
import { isRunOpen, type RunState } from "../engine/run/run.ts";
import { addressesOf, attemptAt, runIdOf } from "./address.ts";
import { type Finding, finding } from "./finding.ts";

/** A recorded line with its file and line number. */
export type PlacedLine = RecordedLine & { readonly where: string };

/** Access to the server's rows. */
export interface Rows {
  run(id: string): Promise<{ readonly state: RunState; readonly retries: number } | undefined>;
  task(id: string): Promise<TaskHistory | undefined>;
  /** A task by the name of its step. */
  step(runId: string, step: string): Promise<TaskHistory | undefined>;
}

/** The rows, and the readers of the protocols' task ids. */
export interface RecordedDeps {
  readonly rows: Rows;
  readonly addresses: readonly ReadAddress[];
}

export interface RecordedOutcome {
  readonly findings: Finding[];
  readonly judged: number;
  /** Lines that are older than the retention time of ended runs. */
  readonly tooOld: number;
  /** Lines with ids that are not of this server. */
  readonly unknown: number;
}

/**
 * The findings, or the reason why a line cannot be checked: `missing` rows, `unknown` ids that are not of this server, or `silent` for a
 * line that proves nothing.
 */
type Judgement = Finding[] | "missing" | "unknown" | "silent";
type Taken = Extract<PlacedLine, { kind: "taken" }>;
type Reported = Extract<PlacedLine, { kind: "reported" }>;
type ReportLine = Exclude<PlacedLine, RecordedWork>;

export async function checkRecorded(lines: readonly PlacedLine[], deps: RecordedDeps, keptSince: number): Promise<RecordedOutcome> {
  const findings = sharedHolds(lines);
  let judged = 0;
  let tooOld = 0;
  let unknown = 0;
  for (const line of lines) {
    const judgement = await check(line, lines, deps);
    if (judgement === "silent") continue;
    if (judgement === "unknown") unknown++;
    else if (judgement === "missing" && line.at < keptSince) tooOld++;
    else {
      judged++;
      if (judgement === "missing") findings.push(missing(line));
      else findings.push(...judgement);
    }
  }
  return { findings, judged, tooOld, unknown };
}

function check(line: PlacedLine, lines: readonly PlacedLine[], deps: RecordedDeps): Promise<Judgement> {
  if (line.kind === "taken") return checkTaken(line, deps);
  return line.kind === "reported" ? checkReport(line, deps) : checkRun(line, lines, deps.rows);
}

function missing(line: PlacedLine): Finding {
  if (line.kind === "taken")
    return finding("recorded-holds", line.taskId, "it was handed to a worker and the server does not have it", line);
  if (line.kind !== "reported")
    return finding("recorded-run", line.runId, "its start was acknowledged and the server does not have it", line);
  const rule = line.outcome === "done" ? "recorded-completion" : "recorded-failure";
  return finding(rule, line.taskId, "its report was acknowledged and the server does not have the task", line);
}

async function checkRun(line: ReportLine, lines: readonly PlacedLine[], rows: Rows): Promise<Finding[] | "missing"> {
  const run = await rows.run(line.runId);
  if (run === undefined) return "missing";
  if (line.kind !== "run-ended" || run.state === line.state) return [];
  // A later request of a client may have restarted the run.
  const ordered = run.retries > 0 || lines.some((one) => one.kind === "run-ordered" && one.runId === line.runId && one.at >= line.at);
  if (ordered) return [];
  const now = isRunOpen(run.state) ? `is ${run.state}` : `ended as ${run.state}`;
  return [finding("recorded-run", line.runId, `its client was told that it ended as ${line.state}, and it ${now}`, line)];
}

/** A delivery is stored before the task is sent. When the ids do not show which delivery it was, there is nothing to compare. */
async function checkTaken(line: Taken, { rows, addresses }: RecordedDeps): Promise<Judgement> {
  const [given] = addressesOf(line, addresses);
  if (given?.grant === undefined) return "silent";
  const task = await rows.task(given.taskId as string);
  if (task === undefined) return (await rows.run(runIdOf(line))) === undefined ? "unknown" : "missing";
  if (given.grant <= task.grant) return [];
  return [finding("recorded-holds", task.id, `a worker was given hand-out ${given.grant} of it and the server knows ${task.grant}`, line)];
}

async function checkReport(line: Reported, deps: RecordedDeps): Promise<Judgement> {
  const { rows } = deps;
  const verb = verbOf(line);
  if (verb === undefined) return "silent";
  const { task, address } = await find(line, deps);
  if (task === undefined) {
    const known = address !== undefined || (await rows.run(runIdOf(line))) !== undefined;
    return known ? "missing" : "unknown";
  }
  const attempt = attemptAt(task, address, line);
  const rule = verb === "complete" ? "recorded-completion" : "recorded-failure";
  if (attempt === undefined) {
    return [finding(rule, task.id, `its ${verb} was acknowledged and the server does not have that attempt`, line, ...task.attempts)];
  }
  // The server stores an accepted report of a cancelled task as the cancellation.
  if (attempt.closedBy === verb || (line.verdict === "cancel" && attempt.closedBy !== null)) return [];
  return [
    finding(rule, task.id, `its ${verb} was acknowledged and the server has ${attempt.closedBy ?? "an open attempt"}`, line, attempt),
  ];
}

/** The verb that must have closed the attempt after an acknowledged report; undefined when the report proves nothing. */
function verbOf({ outcome, verdict }: Reported): "complete" | "fail" | undefined {
  if (verdict !== "ok" && verdict !== "again" && verdict !== "cancel") return undefined;
  return outcome === "done" ? "complete" : outcome === "failed" ? "fail" : undefined;
}

async function find(work: RecordedWork, { rows, addresses: readers }: RecordedDeps): Promise<{ task?: TaskHistory; address?: Address }> {
  const addresses = addressesOf(work, readers);
  for (const address of addresses) {
    const task = await rows.task(address.taskId as string);
    if (task !== undefined) return { task, address };
  }
  const task = await rows.step(runIdOf(work), work.stepId);
  return task === undefined ? {} : { task };
}

/** A lease belongs to one worker: two workers that started with the same grant mean that fencing failed. */
function sharedHolds(lines: readonly PlacedLine[]): Finding[] {
  const first = new Map<string, PlacedLine & RecordedWork>();
  const found: Finding[] = [];
  for (const line of lines) {
    if (line.kind !== "taken") continue;
    const key = `${line.transport} ${line.grantId}`;
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, line);
    else if (earlier.session !== line.session) {
      found.push(finding("recorded-holds", line.taskId, `hold ${line.grantId} was given to two workers`, earlier, line));
    }
  }
  return found;
}
