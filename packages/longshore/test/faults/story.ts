// The merged history, grouped by lease, task and run for the rules of the checker.
import type { Entry, ReportVerb } from "./history.ts";

/** The final state of the server. `ended` and `outcome` are our own, so that the rules do not depend on the server's names of states. */
export interface FinalState {
  runs: { id: string; state: string; ended: boolean }[];
  tasks: FinalTask[];
  /** Every run that the server knows; undefined when the server was not asked. */
  listed?: string[] | undefined;
  /** Every line of every log; undefined when the server was not asked. */
  lines?: string[] | undefined;
}

export interface FinalTask {
  id: string;
  runId: string;
  step: string;
  state: string;
  ended: boolean;
  completed: boolean;
  /** The `token` output of the completion that was recorded. Null when the task has none, undefined when the server does not report it. */
  token?: string | null | undefined;
  /** How many failures the server counted; undefined when it does not report this. */
  failures?: number | undefined;
  /** How many lost holds the server counted; undefined when it does not report this. */
  lost?: number | undefined;
}

interface Report {
  verb: ReportVerb;
  /** Every time it was sent: a report without an answer is sent again. */
  sent: Entry<"report-sent">[];
  /** The first answer that arrived, if any. */
  got?: Entry<"report-got"> | undefined;
  answers: Entry<"report-got">[];
}

export interface Lease {
  id: string;
  task: string;
  runId: string;
  claimSent: Entry<"claim-sent"> | undefined;
  claimGot: Entry<"claim-got">;
  /** Heartbeats that were answered 200. */
  renewals: { sent: Entry<"heartbeat-sent">; got: Entry<"heartbeat-got"> }[];
  /** How many heartbeats were sent, answered or not. */
  beats: number;
  reports: Report[];
}

interface RunStory {
  id: string;
  /** The dependencies of its steps; undefined when its workflow was not recorded. */
  steps?: Record<string, string[]> | undefined;
  started?: Entry<"run-start-acknowledged"> | undefined;
  cancelSent?: Entry<"cancel-sent"> | undefined;
  cancelAcknowledged?: Entry<"cancel-acknowledged"> | undefined;
  restartSent?: Entry<"restart-sent"> | undefined;
  restartAcknowledged?: Entry<"restart-acknowledged"> | undefined;
}

export interface Story {
  /** Leases of each task, oldest hold first. */
  tasks: Map<string, Lease[]>;
  runs: Map<string, RunStory>;
  /** Lines of logs, each separately, as they were sent and answered. */
  lines: Map<string, { runId: string; sent: Entry<"log-sent">; got?: Entry<"log-got"> | undefined }>;
  /** The times without a server, as seen from outside: it was back before `to`. Then every valid hold gets a full term. */
  outages: { from: number; to: number }[];
  /** Claim answers that named a lease which an earlier answer had named. Only where messages are not delivered twice. */
  repeatedLeases: { first: Entry<"claim-got">; again: Entry<"claim-got"> }[];
  final: FinalState;
  finalTasks: Map<string, FinalTask>;
  finalRuns: Map<string, FinalState["runs"][number]>;
}

export const taskName = (runId: string, step: string): string => `${runId}/${step}`;

/** The report that the server accepted for a lease, with its answer. */
export function accepted(lease: Lease, verb: ReportVerb): (Report & { got: Entry<"report-got"> }) | undefined {
  return lease.reports.find(
    (report): report is Report & { got: Entry<"report-got"> } => report.verb === verb && report.got?.status === 200,
  );
}

/** Negative when the first was granted before the second: a later attempt, or the same attempt handed out at a later time. */
export function compareAge({ claimGot: a }: Lease, { claimGot: b }: Lease): number {
  // Where hand-outs have numbers, these give the order; otherwise the times that the worker noted.
  if (a.grant !== undefined && b.grant !== undefined) return a.grant - b.grant;
  return a.attempt - b.attempt || a.grantedAt - b.grantedAt;
}

export function tellStory(history: readonly Entry[], final: FinalState): Story {
  const story: Story = {
    tasks: new Map(),
    runs: new Map(),
    repeatedLeases: [],
    outages: [],
    lines: new Map(),
    final,
    finalTasks: new Map(final.tasks.map((task) => [taskName(task.runId, task.step), task])),
    finalRuns: new Map(final.runs.map((run) => [run.id, run])),
  };
  const leases = new Map<string, Lease>();
  const claimsSent = new Map<string, Entry<"claim-sent">>();
  const beatsSent = new Map<string, Entry<"heartbeat-sent">>();
  const workflows = new Map<string, Record<string, string[]>>();
  let diedAt: number | undefined;
  for (const entry of history) {
    switch (entry.kind) {
      case "workflow-created":
        workflows.set(entry.workflow, entry.steps);
        break;
      case "process-killed":
      case "process-ended":
        if (entry.name === "server") diedAt ??= entry.at;
        break;
      case "process-started":
        if (entry.name === "server" && diedAt !== undefined) story.outages.push({ from: diedAt, to: entry.at });
        if (entry.name === "server") diedAt = undefined;
        break;
      case "run-start-acknowledged":
        Object.assign(runOf(story, entry.runId), { started: entry, steps: workflows.get(entry.workflow) });
        break;
      case "cancel-sent":
        runOf(story, entry.runId).cancelSent ??= entry;
        break;
      case "cancel-acknowledged":
        runOf(story, entry.runId).cancelAcknowledged ??= entry;
        break;
      case "restart-sent":
        runOf(story, entry.runId).restartSent = entry;
        break;
      case "restart-acknowledged":
        runOf(story, entry.runId).restartAcknowledged = entry;
        break;
      case "claim-sent":
        claimsSent.set(`${writer(entry)} ${entry.claim}`, entry);
        break;
      case "claim-got":
        addLease(story, leases, entry, claimsSent.get(`${writer(entry)} ${entry.claim}`));
        break;
      case "heartbeat-sent":
        beatsSent.set(`${entry.leaseId} ${entry.beat}`, entry);
        beaten(leases.get(entry.leaseId));
        break;
      case "heartbeat-got": {
        const sent = beatsSent.get(`${entry.leaseId} ${entry.beat}`);
        if (sent && entry.status === 200) leases.get(entry.leaseId)?.renewals.push({ sent, got: entry });
        break;
      }
      case "log-sent":
        if (!story.lines.has(entry.line)) story.lines.set(entry.line, { runId: entry.runId, sent: entry });
        break;
      case "log-got":
        Object.assign(story.lines.get(entry.line) ?? {}, { got: entry });
        break;
      case "report-sent":
        reportOf(leases.get(entry.leaseId), entry.verb)?.sent.push(entry);
        break;
      case "report-got": {
        const report = reportOf(leases.get(entry.leaseId), entry.verb);
        report?.answers.push(entry);
        if (report) report.got ??= entry;
        break;
      }
    }
  }
  for (const held of story.tasks.values()) held.sort(compareAge);
  return story;
}

function beaten(lease: Lease | undefined): void {
  if (lease) lease.beats++;
}

/** The process that wrote an entry: each process numbers its own claims. */
const writer = (entry: Entry): string => entry.where.slice(0, entry.where.lastIndexOf(":"));

function runOf(story: Story, id: string): RunStory {
  const run = story.runs.get(id) ?? { id };
  story.runs.set(id, run);
  return run;
}

function addLease(story: Story, leases: Map<string, Lease>, got: Entry<"claim-got">, sent: Entry<"claim-sent"> | undefined): void {
  const known = leases.get(got.leaseId);
  if (known) {
    if (!got.stored) story.repeatedLeases.push({ first: known.claimGot, again: got });
    return;
  }
  const task = taskName(got.runId, got.step);
  const lease: Lease = { id: got.leaseId, task, runId: got.runId, claimSent: sent, claimGot: got, renewals: [], beats: 0, reports: [] };
  leases.set(lease.id, lease);
  const held = story.tasks.get(task);
  if (held) held.push(lease);
  else story.tasks.set(task, [lease]);
}

function reportOf(lease: Lease | undefined, verb: ReportVerb): Report | undefined {
  if (!lease) return undefined;
  let report = lease.reports.find((one) => one.verb === verb);
  if (!report) {
    report = { verb, sent: [], answers: [] };
    lease.reports.push(report);
  }
  return report;
}
