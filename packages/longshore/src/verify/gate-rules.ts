// The rules for start limits and debounced starts: who has a place, and who waits.

import { debouncePrefix, type Gate, limitText } from "../engine/run/gate.ts";
import type { Run } from "../engine/run/run.ts";
import { type Finding, finding } from "./finding.ts";

export type GatedRun = Pick<Run, "id" | "gate" | "turn" | "startAt" | "endedAt">;

/** `gate` is that of the run; null when it is not stored. */
export function checkGatedRun(run: GatedRun, gate: Gate | null): Finding[] {
  if (run.gate === null || run.endedAt !== null) return [];
  if (run.turn !== null) return gate === null ? [wrong(run.id, "it waits for its turn at a start limit that is not stored", run)] : [];
  // A run with a delay takes its place when it begins.
  if (run.startAt !== null || gate?.open.includes(run.id)) return [];
  return [wrong(run.id, `it is open and has no place at its start limit ${run.gate}`, run, gate ?? "no start limit")];
}

/** `runOf` reads a run; `waiting` is how many open runs wait for their turn. */
export function checkGate(gate: Gate, runOf: (id: string) => GatedRun | null, waiting: number): Finding[] {
  if (gate.name.startsWith(debouncePrefix)) return checkDebounce(gate, runOf);
  const limit = limitText(gate);
  const found = gate.open.flatMap((id) => {
    const run = runOf(id);
    if (run === null) return [wrong(gate.name, `run ${id} has a place and is not stored: ${limit}`, gate)];
    if (run.endedAt !== null) return [wrong(gate.name, `run ${id} has a place and has ended: ${limit}`, gate, run)];
    const isIts = run.gate === gate.name && run.turn === null;
    return isIts ? [] : [wrong(gate.name, `run ${id} has a place and does not need it: ${limit}`, gate, run)];
  });
  if (new Set(gate.open).size !== gate.open.length) found.push(wrong(gate.name, `a run has two places: ${limit}`, gate));
  if (gate.waiting !== waiting)
    found.push(wrong(gate.name, `it counts ${gate.waiting} runs that wait and there are ${waiting}: ${limit}`, gate));
  return found;
}

function checkDebounce(row: Gate, runOf: (id: string) => GatedRun | null): Finding[] {
  const run = runOf(row.open[0] ?? "");
  if (row.open.length === 1 && run !== null && run.endedAt === null && run.startAt !== null) return [];
  return [wrong(row.name, "its debounced starts have no run that waits for more of them", row, run ?? "no run")];
}

function wrong(subject: string, message: string, ...evidence: readonly unknown[]): Finding {
  return finding("limits-hold", subject, message, ...evidence);
}
