// The signals of a run for people. Signals that no step has taken come first: they may be a mistake.

import { formatDuration } from "../core/duration.ts";
import type { Run, Signal, Step } from "./api.ts";
import type { Client } from "./client.ts";
import { readList } from "./pages.ts";
import { jsonText } from "./print-json.ts";
import { fit, type Paint, pad, printable } from "./terminal.ts";

/** How many signals of each state are shown; --json prints all. */
const shownMax = 20;

/** Reads no list for a run without signals. */
export async function signalsOf(client: Client, { id, signals }: Run): Promise<readonly Signal[]> {
  if (signals.sent === 0) return [];
  return (await readList<Signal>(client, { path: `/runs/${encodeURIComponent(id)}/signals`, cursor: "after" })).items;
}

export interface SignalFrame {
  readonly steps: readonly Pick<Step, "id" | "taskId">[];
  readonly now: number;
  readonly width: number;
  readonly paint: Paint;
}

export function signalLines(signals: readonly Signal[], { steps, now, width, paint }: SignalFrame): string[] {
  if (signals.length === 0) return [];
  const nameWidth = Math.max(...signals.map(({ name }) => name.length));
  const stepOf = new Map(steps.map(({ id, taskId }) => [taskId, id]));
  const kept = (signal: Signal) =>
    paint(
      "yellow",
      fit(`  ${pad(signal.name, nameWidth)}  kept for ${formatDuration(now - signal.sentAt)}  ${jsonText(signal.value)}`, width),
    );
  const taken = ({ name, taskId }: Signal) =>
    taskId === null
      ? paint("yellow", fit(`  ${pad(name, nameWidth)}  dropped: it did not fit the schema; the log has the mistake`, width))
      : paint("dim", fit(`  ${pad(name, nameWidth)}  taken by ${stepOf.get(taskId) ?? taskId}`, width));
  const lines = [
    ...some(
      signals.filter(({ state }) => state === "kept"),
      kept,
    ),
    ...some(
      signals.filter(({ state }) => state === "taken"),
      taken,
    ),
  ];
  return [paint("dim", "signals"), ...lines].map(printable);

  function some(of: readonly Signal[], line: (signal: Signal) => string): string[] {
    const more = of.length - shownMax;
    const last = more > 0 ? [paint("dim", `  … ${more} more ${of[0]?.state}; --json prints all`)] : [];
    return [...of.slice(0, shownMax).map(line), ...last];
  }
}
