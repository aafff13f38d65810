import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Cell,
  cell,
  type EndState,
  fence,
  type Hold,
  isOpen,
  nextDeadline,
  type OpenState,
  passedDeadline,
  type ReportVerb,
  type TaskRow,
  table,
  type Verb,
} from "./task.ts";

// The state machine as the documents show it: a state, or `close`; a verdict after a comma when it is not `ok`; `-` for what is impossible.
const drawn = `
  |            | claim | offer   | extend       | complete          | fail              | defer             | cancel     | expire    |
  | queued     | held  | offered | queued       | done              | close             | queued            | cancelled  | close     |
  | offered    | -     | -       | held         | done              | close             | queued            | cancelled  | queued    |
  | held       | -     | -       | held         | done              | close             | queued            | cancelling | close     |
  | cancelling | -     | -       | same, cancel | cancelled, cancel | cancelled, cancel | cancelled, cancel | -          | cancelled |
  | ended      | -     | -       | same, stale  | same, stale       | same, stale       | same, stale       | -          | -         |
`;

const [verbs = [], ...rows] = drawn
  .trim()
  .split("\n")
  .map((line) => line.split("|").slice(1, -1))
  .map((cells) => cells.map((text) => text.trim()));
const cells = rows.flatMap(([state = "", ...texts]) => texts.map((text, at) => ({ state, verb: verbs[at + 1] as Verb, text })));

const openStates: OpenState[] = ["queued", "offered", "held", "cancelling"];
const endStates: EndState[] = ["done", "failed", "cancelled", "skipped", "forgotten"];
const reports: ReportVerb[] = ["extend", "complete", "fail", "defer"];

describe("the table", () => {
  it("has as many cells as the drawing in the documents, and the same states", () => {
    expect(cells).toHaveLength(40);
    expect(Object.keys(table).sort()).toEqual([...new Set(cells.map(({ state }) => state))].sort());
  });

  it.each(cells)("$state, $verb: $text", ({ state, verb, text }) => {
    const [to, verdict = "ok"] = text.split(", ");
    const expected: Cell | null = to === "-" ? null : ({ to, verdict } as Cell);
    expect(table[state as keyof typeof table][verb]).toEqual(expected);
    const states = state === "ended" ? endStates : [state as OpenState];
    for (const each of states) expect(cell(each, verb)).toEqual(expected);
  });

  it("knows which states are open", () => {
    expect(openStates.every(isOpen)).toBe(true);
    expect(endStates.some(isOpen)).toBe(false);
  });
});

describe("the fence", () => {
  const now = 1_000;
  const none = () => null;
  const held = taskIn("held", { grant: 3, attempt: 1, holder: "ann", holdUntil: now + 1 });
  const ask = (
    task: TaskRow | undefined,
    hold: Omit<Hold, "taskId">,
    verb: ReportVerb = "complete",
    closedBy: (grant: number) => Verb | null = none,
  ) => fence(task, { taskId: "t", ...hold }, verb, now, closedBy);

  it("returns gone for an unknown task", () => {
    for (const verb of reports) expect(ask(undefined, { grant: 1 }, verb)).toBe("gone");
  });

  it("returns gone for a grant or an attempt that was never given", () => {
    expect(ask(held, { grant: 4 })).toBe("gone");
    expect(ask(held, { attempt: 2 })).toBe("gone");
  });

  it("compares only what the hold names", () => {
    for (const hold of [{}, { grant: 3 }, { attempt: 1 }, { holder: "ann" }, { grant: 3, attempt: 1, holder: "ann" }])
      for (const verb of reports) expect(ask(held, hold, verb)).toBe("current");
  });

  it("returns again when the older grant was closed by this same verb, else stale", () => {
    for (const verb of ["complete", "fail", "defer"] as const) {
      for (const closedBy of ["complete", "fail", "defer", "expire", "cancel", null] as const) {
        const asked: number[] = [];
        const verdict = ask(held, { grant: 1 }, verb, (grant) => {
          asked.push(grant);
          return closedBy;
        });
        expect(verdict).toBe(closedBy === verb ? "again" : "stale");
        expect(asked).toEqual([1]);
      }
    }
  });

  it("never returns again to an extend", () => {
    expect(ask(held, { grant: 1 }, "extend", () => "extend")).toBe("stale");
    expect(ask(taskIn("done", { closedBy: "extend" }), {}, "extend")).toBe("stale");
  });

  it("judges an older attempt like an older grant", () => {
    const retried = taskIn("queued", { attempt: 1, grant: 2, closedGrant: 1, closedBy: "fail" });
    expect(ask(retried, { attempt: 0 }, "fail")).toBe("again");
    expect(ask(retried, { attempt: 0 }, "complete")).toBe("stale");
  });

  it("returns again for a repeated report on an ended task, and stale for any other", () => {
    for (const state of endStates) {
      const ended = taskIn(state, { grant: 3, holder: "ann", closedGrant: 3, closedBy: "complete" });
      expect(ask(ended, { grant: 3 }, "complete")).toBe("again");
      expect(ask(ended, { grant: 3 }, "fail")).toBe("stale");
      expect(ask(ended, { grant: 3 }, "extend")).toBe("stale");
    }
  });

  it("returns busy to another holder of the current grant", () => {
    expect(ask(held, { holder: "bob" })).toBe("busy");
    expect(ask(held, { grant: 3, holder: "bob" }, "extend")).toBe("busy");
  });

  it("does not know a holder before the first extend of an offer", () => {
    expect(ask(taskIn("offered", { grant: 3, holdUntil: now + 1 }), { grant: 3, holder: "bob" }, "extend")).toBe("current");
  });

  it("looks at the grant before the holder, so that a late report never gets busy", () => {
    expect(ask(held, { grant: 1, holder: "bob" })).toBe("stale");
  });

  it("returns stale from the moment the term ends, although its deadline has not fired yet", () => {
    for (const state of ["offered", "held", "cancelling"] as const) {
      for (const verb of reports) {
        expect(ask(taskIn(state, { grant: 3, holdUntil: now }), { grant: 3 }, verb)).toBe("stale");
        expect(ask(taskIn(state, { grant: 3, holdUntil: now + 1 }), { grant: 3 }, verb)).toBe("current");
      }
    }
  });
});

describe("deadlines of a task", () => {
  const times = { claimBy: 10, holdUntil: 20, endBy: 30, totalBy: 40 };

  it.each([
    ["queued", 10],
    ["offered", 10],
    ["held", 20],
    ["cancelling", 20],
  ] as const)("count in state %s from %d on", (state, first) => {
    const task = taskIn(state, times);
    expect(nextDeadline(task, 0)).toBe(first);
    expect(passedDeadline(task, first - 1)).toBeNull();
    expect(passedDeadline(task, first)).not.toBeNull();
  });

  it("do not count once it has ended", () => {
    for (const state of endStates) {
      expect(nextDeadline(taskIn(state, times), 0)).toBeNull();
      expect(passedDeadline(taskIn(state, times), 1_000)).toBeNull();
    }
  });

  it("name the earliest that has passed", () => {
    expect(passedDeadline(taskIn("held", times), 100)).toBe("holdUntil");
    expect(passedDeadline(taskIn("held", { ...times, endBy: 15 }), 100)).toBe("endBy");
    expect(passedDeadline(taskIn("queued", { ...times, totalBy: 5 }), 100)).toBe("totalBy");
    expect(passedDeadline(taskIn("cancelling", { ...times, endBy: 15 }), 100)).toBe("holdUntil");
  });

  it("of an offer count before its own end, also when they fire late", () => {
    const offer = { holdUntil: 10, claimBy: 30, totalBy: 40 };
    expect(passedDeadline(taskIn("offered", offer), 29)).toBe("holdUntil");
    expect(passedDeadline(taskIn("offered", offer), 30)).toBe("claimBy");
    expect(passedDeadline(taskIn("offered", { ...offer, endBy: 20 }), 40)).toBe("endBy");
  });

  it("that pass at the same time count by how much they end", () => {
    const same = { claimBy: 10, holdUntil: 10, endBy: 10 };
    expect(passedDeadline(taskIn("held", same), 10)).toBe("endBy");
    expect(passedDeadline(taskIn("held", { ...same, totalBy: 10 }), 10)).toBe("totalBy");
    expect(passedDeadline(taskIn("queued", { ...same, totalBy: 10 }), 10)).toBe("totalBy");
  });

  it("include the end of a delay, as long as it lasts, on a lane or not", () => {
    const delayed = taskIn("queued", { dueAt: 50 });
    expect(nextDeadline(delayed, 49)).toBe(50);
    expect(nextDeadline(delayed, 50)).toBeNull();
    expect(nextDeadline({ ...delayed, lane: null }, 49)).toBe(50);
  });

  it("are found passed exactly when the earliest is due", () => {
    const time = fc.option(fc.integer({ min: 1, max: 20 }));
    const any = fc.record({ claimBy: time, holdUntil: time, endBy: time, totalBy: time });
    fc.assert(
      fc.property(fc.constantFrom(...openStates), any, fc.integer({ min: 0, max: 25 }), (state, made, now) => {
        const task = taskIn(state, made);
        const next = nextDeadline(task, now);
        expect(passedDeadline(task, now) !== null).toBe(next !== null && next <= now);
      }),
    );
  });
});

function taskIn(state: TaskRow["state"], parts: Partial<TaskRow> = {}): TaskRow {
  return {
    id: "t",
    runId: null,
    node: 0,
    step: "greet",
    lane: { name: "greet", labels: [] },
    priority: 0,
    state,
    sequence: 1,
    attempt: 0,
    firstAttempt: 0,
    ordinal: 0,
    grant: 0,
    holder: null,
    termMs: 1_000,
    input: "null",
    output: null,
    error: null,
    fault: null,
    overdue: null,
    failures: 0,
    lost: 0,
    deferrals: 0,
    policy: null,
    limits: [],
    holdMs: null,
    claimMs: null,
    endMs: null,
    postedAt: 0,
    attemptAt: 0,
    queuedAt: 0,
    dueAt: 0,
    startedAt: null,
    claimedAt: null,
    endedAt: null,
    claimBy: null,
    holdUntil: null,
    endBy: null,
    totalBy: null,
    closedGrant: 0,
    closedBy: null,
    closedReceipt: null,
    streamed: false,
    signal: null,
    command: null,
    ...parts,
  };
}
