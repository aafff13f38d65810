import { describe, expect, it } from "vitest";
import type { Run, Step } from "./api.ts";
import { renderChanges, renderRun, titleOf } from "./run-view.ts";
import { painter, widthOf } from "./terminal.ts";
import { timeText } from "./time-text.ts";
import type { RunView } from "./watch-run.ts";

const paint = painter({ write: () => true }, {});
const at = 1_000_000;

function run(more: Partial<Run> = {}): Run {
  const none = {
    input: null,
    output: null,
    variables: null,
    error: null,
    endedAt: null,
    endBy: null,
    startAt: null,
    alias: null,
    parentTaskId: null,
  };
  const signals = { sent: 0, kept: 0 };
  return {
    id: "R1",
    workflow: "order",
    definitionId: "D1",
    state: "running",
    createdAt: at,
    left: 1,
    failed: 0,
    retries: 0,
    signals,
    priority: 0,
    ...none,
    ...more,
  };
}

function step(id: string, more: Partial<Step> = {}): Step {
  const none = { taskId: null, holder: null, error: null, queuedAt: null, dueAt: null, startedAt: null, endedAt: null, lastLine: null };
  return { id, state: "waiting", kind: "task", after: [], startedBy: [], attempt: 0, ...none, ...more };
}

describe("a run with a delay", () => {
  const startAt = at + 90_000_000;

  it("is shown as sleeping until its time, in a terminal and in a file", () => {
    const view = { run: run({ startAt }), steps: [step("price")] };
    expect(renderRun(view, { now: at, width: 100, paint })[0]).toMatch(/^order {2}sleeping until 1970-01-0\d \d\d:\d\d /);
    expect(renderChanges(undefined, view, paint)).toEqual(["order R1", expect.stringMatching(/^order sleeping until 1970-01-0\d/)]);
    expect(renderChanges(view, view, paint)).toEqual([]);
    expect(renderChanges(view, { ...view, run: run() }, paint)).toEqual(["order running"]);
  });
});

describe("a run in a terminal", () => {
  const steps = [
    step("price", { state: "done", attempt: 1, startedAt: at, endedAt: at + 500, lastLine: "total 47" }),
    step("charge-card", { state: "held", attempt: 2, startedAt: at + 600, lastLine: "asking the bank" }),
    step("pack", { state: "queued", attempt: 2, error: null, lastLine: "no box" }),
    step("bill", {
      state: "queued",
      attempt: 2,
      waiting: { reason: "not-due", text: "it is due in 9 s", at: at + 9_000 },
      lastError: "no ink",
    }),
    step("check", { state: "failed", attempt: 1, startedAt: at, endedAt: at + 10, error: "no such street" }),
    step("thank", { state: "skipped", attempt: 3 }),
    step("ship", { after: ["pack", "charge-card"] }),
  ];

  it("shows each step with its state, its time and its last line", () => {
    expect(renderRun({ run: run(), steps }, { now: at + 2_000, width: 80, paint })).toEqual([
      "order  running  2.0 s  R1",
      "✓ price        done        500 ms  total 47",
      "● charge-card  running      1.4 s  (try 2)  asking the bank",
      "↻ pack         retries             (try 2)  no box",
      "↻ bill         retries             (try 2)  it is due in 9 s; no ink",
      "✗ check        failed       10 ms  no such street",
      "– thank        skipped",
      "· ship         waits               after pack, charge-card",
    ]);
  });

  it("shows why a step waits that no worker takes", () => {
    const waits = { reason: "signal" as const, text: 'waiting for signal "approve"', signal: "approve" };
    const record = { reason: "record" as const, text: "the function waits for its steps" };
    const wakesAt = at + 3_600_000;
    const sleeps = { reason: "sleeping" as const, text: "sleeping until 1970-01-01T01:16:40.000Z", at: wakesAt };
    const steps = [
      step("approve", { state: "queued", attempt: 1, waiting: waits }),
      step("again", { state: "queued", attempt: 2, waiting: waits, lastError: "no" }),
      step("nap", { state: "queued", attempt: 1, waiting: sleeps }),
      step("order", { state: "queued", attempt: 1, waiting: record }),
    ];
    const until = `sleeping until ${timeText(wakesAt, at)}`;
    expect(renderRun({ run: run(), steps }, { now: at, width: 80, paint }).slice(1)).toEqual([
      '◇ approve  waits               waiting for signal "approve"',
      '◇ again    waits               (try 2)  waiting for signal "approve"',
      `◇ nap      sleeps              ${until}`,
      "◇ order    waits               the function waits for its steps",
    ]);
    expect(renderChanges(undefined, { run: run(), steps }, paint, at).slice(1)).toEqual([
      '◇ approve waits: waiting for signal "approve"',
      '◇ again waits (try 2): waiting for signal "approve"',
      `◇ nap sleeps: ${until}`,
      "◇ order waits: the function waits for its steps",
    ]);
    expect(renderRun({ run: run(), steps }, { now: at, width: 80, rows: 3, paint }).at(-1)).toBe("… and 2 waiting, 1 sleeping");
  });

  it("shows the dead letters of a step, one on each line", () => {
    const first = [
      { uid: "b2", reason: "bad_row", error: "page 2 is\u001b[2J torn", tries: 3 },
      { uid: "b7", reason: "too_large", error: null, tries: 1 },
    ];
    const steps = [step("read", { state: "done", attempt: 1, deadLetters: { total: 12, first } })];
    expect(renderRun({ run: run(), steps }, { now: at, width: 48, paint }).slice(1)).toEqual([
      "✓ read  done",
      "    dead letter b2: bad_row after 3 tries: page…",
      "    dead letter b7: too_large after 1 try",
      "    and 10 more dead letters",
    ]);
  });

  it("never uses more columns than the terminal has", () => {
    const long = [
      step("a", { state: "held", attempt: 3, startedAt: at, lastLine: "x".repeat(500) }),
      step("b", { after: ["y".repeat(300)] }),
    ];
    for (const width of [10, 40, 80]) {
      for (const line of renderRun({ run: run(), steps: long }, { now: at, width, paint }).slice(1)) {
        expect(widthOf(line)).toBeLessThanOrEqual(Math.max(width, 30));
      }
    }
  });

  it("cuts an error at the width, or shows all of it when lines may be wrapped", () => {
    const error = `${"the code does not match the journal, ".repeat(3)}at step prices`;
    const steps = [step("a", { state: "failed", attempt: 1, error }), step("b", { state: "held", attempt: 1, lastLine: "x".repeat(90) })];
    const shown = (parts: object) => renderRun({ run: run(), steps }, { now: at, width: 60, paint, ...parts }).slice(1);
    expect(shown({}).map((line) => [widthOf(line), line.at(-1)])).toEqual([
      [60, "…"],
      [60, "…"],
    ]);
    expect(shown({ wholeErrors: true })).toEqual([expect.stringMatching(/^✗ a .*at step prices$/), expect.stringMatching(/^● b .{55}…$/)]);
    expect(
      renderChanges(undefined, { run: run(), steps: [step("a", { state: "failed", attempt: 1, error: error.repeat(2) })] }, paint)[1],
    ).toBe(`✗ a failed: ${error.repeat(2)}`);
  });

  it("with more steps than lines, shows the steps that failed and that run, and counts the others", () => {
    const many = Array.from({ length: 200 }, (_, n) => {
      const id = `s${n}`;
      if (n === 150) return step(id, { state: "failed", attempt: 1, startedAt: at, endedAt: at, error: "no ink" });
      if (n === 151 || n === 152) return step(id, { state: "held", attempt: 1, startedAt: at });
      if (n === 153) return step(id, { state: "queued", attempt: 1, waiting: { reason: "no-worker", text: "no worker is connected" } });
      if (n > 153) return step(id, n < 160 ? { state: "queued", attempt: 1 } : { after: [`s${n - 1}`] });
      return step(id, { state: "done", attempt: 1, startedAt: at, endedAt: at + n });
    });
    const frame = { now: at, width: 60, paint };
    expect(renderRun({ run: run(), steps: many }, { ...frame, rows: 14 })).toEqual([
      "order  running  0 ms  R1",
      "✓ s148  done        148 ms",
      "✓ s149  done        149 ms",
      "✗ s150  failed        0 ms  no ink",
      "● s151  running       0 ms",
      "● s152  running       0 ms",
      "○ s153  queued              no worker is connected",
      ...[154, 155, 156, 157, 158, 159].map((n) => `○ s${n}  queued`),
      "… and 148 done, 40 waiting",
    ]);
    expect(renderRun({ run: run(), steps: many }, { ...frame, rows: 3 })).toEqual([
      "order  running  0 ms  R1",
      "✗ s150  failed        0 ms  no ink",
      "… and 150 done, 2 running, 7 queued, 40 waiting",
    ]);
    expect(renderRun({ run: run(), steps: many }, { ...frame, rows: 201 })).toHaveLength(201);
  });

  it("shows steps that were never reached as not run", () => {
    const [, line] = renderRun({ run: run({ state: "failed", endedAt: at }), steps: [step("ship")] }, { now: at, width: 80, paint });
    expect(line).toBe("· ship  not run");
  });
});

describe("a run in a file", () => {
  it("shows each dead letter of a step once", () => {
    const letter = (uid: string) => ({ uid, reason: "bad_row", error: "torn", tries: 2 });
    const view = (...uids: string[]) => ({
      run: run(),
      steps: [step("read", { state: "held", attempt: 1, deadLetters: { total: uids.length, first: uids.map(letter) } })],
    });
    const told = "dead letter b2: bad_row after 2 tries: torn";
    expect(renderChanges(undefined, view("b2"), paint)).toEqual(["order R1", "● read running", `  read: ${told}`]);
    expect(renderChanges(view("b2"), view("b2", "b9"), paint)).toEqual([`  read: ${told.replace("b2", "b9")}`]);
  });

  it("has one line for each change, and none when nothing changed", () => {
    const first = { run: run(), steps: [step("a", { state: "held", attempt: 1, startedAt: at }), step("b", { after: ["a"] })] };
    expect(renderChanges(undefined, first, paint)).toEqual(["order R1", "● a running"]);
    expect(renderChanges(first, first, paint)).toEqual([]);
    const said = { ...first, steps: [{ ...(first.steps[0] as Step), lastLine: "half\u001b[2J way" }, first.steps[1] as Step] };
    expect(renderChanges(first, said, paint)).toEqual(["  a: half way"]);
    const done = {
      run: run({ state: "succeeded", endedAt: at + 900 }),
      steps: [
        step("a", { state: "done", attempt: 1, startedAt: at, endedAt: at + 800, lastLine: "half way" }),
        step("b", { state: "skipped" }),
      ],
    };
    expect(renderChanges(undefined, done, paint).at(-1)).toBe("order succeeded after 900 ms");
    expect(renderChanges(done, done, paint)).toEqual([]);
    const paused = { ...said, run: run({ state: "paused" }) };
    expect(renderChanges(said, paused, paint)).toEqual(["order paused"]);
    expect(renderChanges(paused, said, paint)).toEqual(["order running"]);
    expect(renderRun(paused, { now: at, width: 60, paint })[2]).toContain("waits");
    expect(renderChanges(said, done, paint)).toEqual(["✓ a done after 800 ms: half way", "– b skipped", "order succeeded after 900 ms"]);
  });

  it("shows why no worker can take a step, once in a file", () => {
    const text = "Kafka at broker:9092 has been out of reach for 4 s (refused)";
    const waits = step("index", { state: "offered", attempt: 1, error: "flaky", waiting: { reason: "unreachable", text } });
    expect(renderRun({ run: run(), steps: [waits] }, { now: at, width: 100, paint })[1]).toBe(`○ index  offered             ${text}`);
    const [before, after] = [{ ...waits, waiting: { reason: "next" as const, text: "soon" } }, waits].map((one) => ({
      run: run(),
      steps: [one],
    }));
    expect(renderChanges(before, after as RunView, paint)).toEqual([`  index waits: ${text}`]);
    expect(renderChanges(after, after as RunView, paint)).toEqual([]);
  });

  it("hides generated parts of the name of a flow", () => {
    expect(titleOf({ workflow: ".order+0123456789ab" })).toBe("order");
    expect(titleOf({ workflow: "order+0123456789abcdef" })).toBe("order+0123456789abcdef");
  });
});
