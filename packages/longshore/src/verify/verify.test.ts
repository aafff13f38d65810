// Broken histories of each kind, because a rule that no history can break would prove nothing.

import { describe, expect, it } from "vitest";
import type { RecordedLine, RecordedWork } from "../core/recording.ts";
import type { AttemptHistory, JournalCounts, RunHistory, TaskHistory } from "../engine/run/history.ts";
import type { Keep } from "../engine/run/retention.ts";
import { rules } from "./finding.ts";
import type { PlacedLine } from "./recorded-rules.ts";
import { type HistorySource, verify } from "./verify.ts";

const now = 10_000;
const runId = "01RUN";
const taskId = `${runId}.0`;

function attempt(parts: Partial<AttemptHistory> = {}): AttemptHistory {
  return { attempt: 0, grant: 1, holder: "w1", claimedAt: 1_000, endedAt: 2_000, closedBy: "complete", state: "done", ...parts };
}

function task(parts: Partial<TaskHistory> = {}): TaskHistory {
  const base = { id: taskId, runId, step: "build", state: "done" as const, onLane: true, startsRun: false, firstAttempt: 0 };
  return {
    ...base,
    grant: (parts.attempts ?? [attempt()]).at(-1)?.grant ?? 0,
    closedGrant: 1,
    endedAt: 2_000,
    hasOutput: true,
    command: null,
    attempts: [attempt()],
    parts: [],
    ...parts,
  };
}

function run(parts: Partial<RunHistory> = {}): RunHistory {
  const base = { id: runId, workflow: "ci", state: "succeeded" as const, endedAt: 2_000, active: 0, retries: 0, hasDefinition: true };
  return { ...base, parentTaskId: null, tasks: [task()], children: [], messages: [], ...parts };
}

const openAttempt = attempt({ closedBy: null, endedAt: null, state: "held" });
const openTask = task({ state: "held", endedAt: null, hasOutput: false, closedGrant: 0, attempts: [openAttempt] });
const openRun = run({ state: "running", endedAt: null, active: 1, tasks: [openTask] });

function sourceOf(runs: readonly RunHistory[], loose: readonly TaskHistory[] = [], kept?: Keep): HistorySource {
  const tasks = [...runs.flatMap((one) => one.tasks), ...loose];
  return {
    async *runs() {
      yield* runs;
    },
    async *looseTasks() {
      yield* loose;
    },
    async *others() {},
    kept: async () => kept,
    run: async (id) => runs.find((one) => one.id === id),
    task: async (id) => tasks.find((one) => one.id === id),
    step: async (id, step) => tasks.find((one) => one.runId === id && one.step === step),
  };
}

const work: RecordedWork = {
  ...{ transport: "test", task: "build", runId, stepId: "build", taskId: `${runId}/build`, grantId: `${taskId}-1`, attempt: 1 },
};
type Plain = RecordedLine extends infer Line ? (Line extends RecordedLine ? Omit<Line, "at" | "session"> : never) : never;
const line = (recorded: Plain, at = 5_000, session = "s1") => ({ ...recorded, at, session, where: "w.jsonl:1" }) as PlacedLine;

async function rulesBroken(source: HistorySource, recorded: readonly PlacedLine[] = []): Promise<string[]> {
  const { findings } = await verify(source, { recorded, now });
  return findings.map(({ rule }) => rule);
}

const inRun = (tasks: TaskHistory[]) => sourceOf([run({ tasks })]);
const retried = attempt({ attempt: 1, grant: 3, claimedAt: 3_000, endedAt: 4_000 });

const failedByCompletion = attempt({ state: "failed" });

describe("a complete history", () => {
  it("breaks no rule when a durable function fails by the report of its turn, or an earlier server does not tell functions apart", async () => {
    const ended = { state: "failed" as const, hasOutput: false, attempts: [failedByCompletion] };
    for (const command of ["function", undefined]) expect(await rulesBroken(inRun([task({ ...ended, command })]))).toEqual([]);
  });

  it("breaks no rule: a run that has ended, is open, or was retried before or after its end", async () => {
    const failedOnce = task({ attempts: [attempt({ closedBy: "fail" }), retried], closedGrant: 3, endedAt: 4_000 });
    const secondLife = task({ firstAttempt: 1, attempts: [attempt(), retried], closedGrant: 3, endedAt: 4_000 });
    for (const tasks of [[failedOnce], [secondLife]]) expect(await rulesBroken(inRun(tasks))).toEqual([]);
    expect(await rulesBroken(sourceOf([openRun], [task({ id: "loose", runId: null })]))).toEqual([]);
  });

  it("breaks no rule while a message about the child run waits", async () => {
    const waiting = { ...openTask, onLane: false, startsRun: true };
    const message = { kind: "start-run" as const, workflow: "child", dialect: "code", input: "{}", parentTaskId: taskId, from: runId };
    expect(await rulesBroken(sourceOf([{ ...openRun, tasks: [waiting], messages: [message] }]))).toEqual([]);
    const child = { taskId, attempt: 0, runId: "01CHILD", state: "running" as const };
    expect(await rulesBroken(sourceOf([{ ...openRun, tasks: [waiting], children: [child] }]))).toEqual([]);
  });
});

/** A command of a durable function: done with a number for its result, open without. */
function command(node: number, after: number, place: number, state = place > 0 ? ("done" as const) : ("queued" as const)): TaskHistory {
  const open = { state: "queued" as const, endedAt: null, hasOutput: false, attempts: [{ ...openAttempt, state: "queued" as const }] };
  const about = { id: `${runId}.${node}`, command: `${after} step build`, place, closedGrant: 0 };
  return task({ ...(state === "done" ? { closedGrant: 1 } : open), ...about });
}

/** A function that waits for its commands. */
function functionOf(commands: readonly TaskHistory[], journal: Partial<JournalCounts> = {}): HistorySource {
  const driver = command(0, 0, 0);
  const tasks = [{ ...driver, onLane: false, command: "function" }, ...commands];
  const active = tasks.filter(({ state }) => state === "queued").length;
  return sourceOf([{ ...openRun, active, tasks, journal: { commands: 3, place: 2, sent: 1, waits: true, ...journal } }]);
}

describe("the journal of a durable function", () => {
  it("breaks no rule while the function waits, and while a side effect of its turn has not ended", async () => {
    expect(await rulesBroken(functionOf([command(1, 0, 2), command(2, 0, 1), command(3, 2, 0)]))).toEqual([]);
    const local = [command(2, 0, 1), command(3, 1, 0)];
    expect(await rulesBroken(functionOf(local, { waits: false }))).toEqual([]);
    const isVoid = { ...command(2, 0, 1), state: "forgotten" as const };
    expect(await rulesBroken(functionOf([command(1, 0, 1), isVoid], { waits: false }))).not.toContain("journal-whole");
  });
});

/** The record of a step that waits for other steps. */
const waitingJoin: TaskHistory = { ...openTask, state: "queued", onLane: false, joins: true };

describe("a run with a delay", () => {
  it("breaks no rule before it begins", async () => {
    expect(await rulesBroken(sourceOf([{ ...openRun, startAt: 5_000, active: 0, tasks: [] }]))).toEqual([]);
  });
});

describe("a JOIN that waits", () => {
  it("breaks no rule while another task, the rest of a decision or a message can end it, or while its run is paused", async () => {
    const other = { ...openTask, id: `${runId}.1` };
    expect(await rulesBroken(sourceOf([{ ...openRun, active: 2, tasks: [waitingJoin, other] }]))).toEqual([]);
    expect(await rulesBroken(sourceOf([{ ...openRun, active: 2, left: 1, tasks: [waitingJoin] }]))).toEqual([]);
    expect(await rulesBroken(sourceOf([{ ...openRun, tasks: [waitingJoin], messages: [{ kind: "go-on", runId }] }]))).toEqual([]);
    expect(await rulesBroken(sourceOf([{ ...openRun, state: "paused", tasks: [waitingJoin] }]))).toEqual([]);
  });
});

describe("a broken history", () => {
  const broken: Record<string, [title: string, source: HistorySource][]> = {
    "run-state": [
      ["an ended run without an end time", sourceOf([run({ endedAt: null })])],
      ["a run without its definition", sourceOf([run({ hasDefinition: false })])],
    ],
    "run-can-move": [
      ["a running run whose tasks have all ended", sourceOf([{ ...openRun, tasks: [task()] }])],
      ["a running run that counts more open steps than it has", sourceOf([{ ...openRun, active: 2 }])],
      [
        "an open task whose earlier attempt is void, and that is not counted",
        sourceOf([{ ...openRun, active: 0, messages: [{ kind: "forget-tasks", runId, at: 1, steps: [[0, 7]] }] }]),
      ],
      ["a run that has not begun and has a task", sourceOf([{ ...openRun, startAt: 5_000 }])],
    ],
    "join-can-move": [
      ["a JOIN beside tasks that have all ended", sourceOf([{ ...openRun, tasks: [task({ id: `${runId}.1` }), waitingJoin] }])],
      [
        "two JOINs that wait for each other's end",
        sourceOf([{ ...openRun, active: 2, tasks: [waitingJoin, { ...waitingJoin, id: `${runId}.1` }] }]),
      ],
    ],
    "run-is-quiet": [["an ended run with a queued task", sourceOf([run({ tasks: [{ ...openTask, state: "queued" }] })])]],
    "child-can-move": [
      [
        "a step that waits for a child run that is not there",
        sourceOf([{ ...openRun, tasks: [{ ...openTask, onLane: false, startsRun: true }] }]),
      ],
      [
        "a step that waits for a child run that has ended",
        sourceOf([
          {
            ...openRun,
            tasks: [{ ...openTask, onLane: false, startsRun: true }],
            children: [{ taskId, attempt: 0, runId: "01CHILD", state: "failed" }],
          },
        ]),
      ],
    ],
    "journal-whole": [
      ["a command above the count", functionOf([command(1, 0, 1), command(2, 1, 0)], { commands: 1 })],
      ["a missing command of a function that waits", functionOf([command(1, 0, 1), command(3, 1, 0)])],
      ["a command before an earlier one", functionOf([command(1, 1, 0), command(2, 0, 0)])],
      ["a result without a number", functionOf([command(1, 0, 0, "done"), command(2, 0, 0)])],
      ["one number for two results", functionOf([command(1, 0, 1), command(2, 0, 1), command(3, 1, 0)])],
      ["a result above the count", functionOf([command(1, 0, 9), command(2, 0, 0)])],
      ["a result from before its command", functionOf([command(1, 1, 1), command(2, 1, 0)])],
      ["more results sent than there are", functionOf([command(1, 0, 1), command(2, 1, 0)], { sent: 9 })],
    ],
    "task-state": [
      ["a done task without an end time", inRun([task({ endedAt: null })])],
      ["a done task without an output", inRun([task({ hasOutput: false })])],
      ["a failed task that a completion has ended", inRun([task({ state: "failed", hasOutput: false, attempts: [failedByCompletion] })])],
    ],
    "one-completion": [
      ["two accepted completions in one life", inRun([task({ attempts: [attempt(), retried], closedGrant: 3 })])],
      ["a retry after a completion", inRun([task({ attempts: [attempt(), { ...retried, closedBy: "fail" }], closedGrant: 3 })])],
    ],
    "fences-rise": [
      ["a closed grant that is newer than the task's", inRun([task({ closedGrant: 7 })])],
      [
        "an attempt with an older grant",
        inRun([task({ attempts: [attempt({ grant: 5, closedBy: "fail" }), retried], grant: 5, closedGrant: 3 })]),
      ],
    ],
    "holds-apart": [
      [
        "a hold that begins before the end of the previous hold",
        inRun([task({ attempts: [attempt({ closedBy: "expire", endedAt: 3_500 }), retried], closedGrant: 3 })]),
      ],
    ],
    "parts-whole": [
      ["parts with a gap", inRun([task({ parts: [{ life: 0, count: 2, first: 0, last: 2, grantMax: 1 }] })])],
      ["a part of a grant that never was", inRun([task({ parts: [{ life: 0, count: 1, first: 0, last: 0, grantMax: 9 }] })])],
    ],
  };

  for (const [rule, histories] of Object.entries(broken)) {
    it.each(histories)(`breaks ${rule}: %s`, async (_title, source) => {
      expect(await rulesBroken(source)).toEqual([rule]);
    });
  }

  it("exists in this test for every rule about rows; blobs, schedules, signals and start limits are tested with files", () => {
    const tried = [...Object.keys(broken), "blob-whole", "limits-hold", "schedule-can-tick", "signals-whole"];
    expect(tried.sort()).toEqual(
      Object.keys(rules)
        .filter((rule) => !rule.startsWith("recorded-"))
        .sort(),
    );
  });
});

describe("a recording", () => {
  const done = line({ kind: "reported", outcome: "done", verdict: "ok", ...work });
  const failed = line({ kind: "reported", outcome: "failed", verdict: "ok", ...work });

  it("agrees with the stored rows, with the ids of each protocol", async () => {
    const conductor = line({ ...done, taskId: `${taskId}.0`, grantId: `${taskId}.0/1` } as Plain);
    const stepflow = line({ ...done, grantId: `${taskId}-1/1` } as Plain);
    const byStep = line({ ...done, taskId: "17", grantId: "17" } as Plain);
    const lines = [done, conductor, stepflow, byStep, line({ kind: "run-ended", runId, workflow: "ci", state: "succeeded" })];
    const verification = await verify(sourceOf([run()]), { recorded: lines, now });
    expect(verification).toMatchObject({ total: 0, lines: { judged: 5, tooOld: 0, unknown: 0 } });
  });

  it("shows acknowledged starts and completions that are missing", async () => {
    const started = line({ kind: "run-started", runId: "01GONE", workflow: "ci", state: "running" });
    const gone = line({ ...done, runId, grantId: `${runId}.9-1`, stepId: "deploy" } as Plain);
    expect(await rulesBroken(sourceOf([run()]), [started, gone])).toEqual(["recorded-run", "recorded-completion"]);
  });

  it("counts entries that retention may have removed or that belong to another server, without checking them", async () => {
    const started = line({ kind: "run-started", runId: "01GONE", workflow: "ci", state: "running" });
    const foreign = line({ ...done, runId: "elsewhere", taskId: "x", grantId: "x" } as Plain);
    const verification = await verify(sourceOf([run()]), { recorded: [started, foreign], now, keptMs: now - 6_000 });
    expect(verification).toMatchObject({ total: 0, lines: { judged: 0, tooOld: 1, unknown: 1 } });
  });

  it("is checked with the server's retention: how long it keeps runs, and how many", async () => {
    const day = 86_400_000;
    const later = 40 * day;
    const keep = (days: number, count = 10): Keep => ({ ageMs: days * day, count });
    const begun = (daysAgo: number) =>
      line({ kind: "run-started", runId: "01GONE", workflow: "ci", state: "running" }, later - daysAgo * day);
    const recorded = [begun(20), begun(31)];
    const judgedWith = async (kept?: Keep, keptMs?: number) =>
      (await verify(sourceOf([run()], [], kept), { recorded, now: later, keptMs })).lines.judged;
    expect(await judgedWith()).toBe(1);
    expect(await judgedWith(keep(32))).toBe(2);
    expect(await judgedWith(keep(7))).toBe(0);
    expect(await judgedWith(keep(32, 1))).toBe(0);
    expect(await judgedWith(keep(7), 30 * day)).toBe(1);
  });

  it("shows a hand-out that the server does not know; one with insufficient ids is not checked", async () => {
    const taken = (parts: Partial<RecordedWork>) => line({ kind: "taken", ...work, ...parts });
    expect(await rulesBroken(sourceOf([run()]), [taken({}), taken({ grantId: "17", taskId: "17" })])).toEqual([]);
    expect(await rulesBroken(sourceOf([run()]), [taken({ grantId: `${taskId}-2` })])).toEqual(["recorded-holds"]);
    expect(await rulesBroken(sourceOf([run()]), [taken({ grantId: `${runId}.9-1` })])).toEqual(["recorded-holds"]);
  });

  it("shows a completion that the server has stored with another outcome", async () => {
    const lost = task({ attempts: [attempt({ closedBy: "expire" }), retried], closedGrant: 3, endedAt: 4_000 });
    expect(await rulesBroken(inRun([lost]), [done])).toEqual(["recorded-completion"]);
    expect(await rulesBroken(inRun([task()]), [failed])).toEqual(["recorded-failure"]);
    expect(await rulesBroken(sourceOf([openRun]), [done])).toEqual(["recorded-completion"]);
  });

  it("allows every outcome when no response arrived or the report was refused", async () => {
    const silent = { ...done, verdict: null } as PlacedLine;
    const stale = { ...done, verdict: "stale" } as PlacedLine;
    expect(await rulesBroken(sourceOf([openRun]), [silent, stale])).toEqual([]);
  });

  it("shows a run whose end differs from what its client received, except when it was restarted", async () => {
    const told = line({ kind: "run-ended", runId, workflow: "ci", state: "failed" });
    const ordered = line({ kind: "run-ordered", runId, workflow: "ci", state: "running" }, 6_000);
    expect(await rulesBroken(sourceOf([run()]), [told])).toEqual(["recorded-run"]);
    expect(await rulesBroken(sourceOf([run()]), [told, ordered])).toEqual([]);
  });

  it("shows a hold that two workers received", async () => {
    const first = line({ kind: "taken", ...work });
    const second = line({ kind: "taken", ...work }, 5_100, "s2");
    expect(await rulesBroken(sourceOf([run()]), [first, second])).toEqual(["recorded-holds"]);
    expect(await rulesBroken(sourceOf([run()]), [first, { ...first, at: 5_100 }])).toEqual([]);
  });
});

describe("a live server", () => {
  it("is read again until two reads agree, so that a run that changes is not reported as broken", async () => {
    const moving = [openRun, { ...openRun, active: 5 }, run()];
    const source = { ...sourceOf([{ ...openRun, active: 2 }]), again: async () => moving.pop() };
    expect(await rulesBroken(source)).toEqual([]);
    const stuck = { ...openRun, active: 2 };
    expect(await rulesBroken({ ...sourceOf([stuck]), again: async () => stuck })).toEqual(["run-can-move"]);
  });
});
