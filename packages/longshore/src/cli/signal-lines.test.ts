import { expect, it } from "vitest";
import type { Signal } from "./api.ts";
import { signalLines } from "./signal-lines.ts";
import { painter } from "./terminal.ts";

const paint = painter({ write: () => true }, {});
const frame = { steps: [{ id: "ask", taskId: "R1.0" }], now: 61_000, width: 60, paint };

function signal(number: number, more: Partial<Signal> = {}): Signal {
  const none = { key: null, takenAt: null, taskId: null, attempt: null };
  return { runId: "R1", number, name: "approve", state: "kept", value: { ok: true }, sentAt: 1_000, ...none, ...more };
}

const taken = { state: "taken" as const, value: null, takenAt: 2_000, attempt: 1 };

it("the kept signals of a run come first, with their values and ages; the others name the step that received them", () => {
  const signals = [
    signal(1, { ...taken, taskId: "R1.0" }),
    signal(2, { name: "no", value: "\u001b[2J" }),
    signal(3, { ...taken, taskId: "R1.9" }),
    signal(4),
    signal(5, { ...taken, name: "bad", attempt: null }),
  ];
  expect(signalLines(signals, frame)).toEqual([
    "signals",
    '  no       kept for 1 m 0 s  "\\u001b[2J"',
    '  approve  kept for 1 m 0 s  {"ok":true}',
    "  approve  taken by ask",
    "  approve  taken by R1.9",
    "  bad      dropped: it did not fit the schema; the log has …",
  ]);
});

it("a run without signals has no lines, and a run with very many signals has a limited number of lines", () => {
  expect(signalLines([], frame)).toEqual([]);
  const lines = signalLines(
    Array.from({ length: 50 }, (_, at) => signal(at + 1)),
    frame,
  );
  expect([lines.length, lines.at(-1)]).toEqual([22, "  … 30 more kept; --json prints all"]);
});
