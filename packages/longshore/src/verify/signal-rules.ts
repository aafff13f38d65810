// The rules for the signals of a run.

import type { Run } from "../engine/run/run.ts";
import { type Signal, signalCountsOf } from "../engine/signal/signal.ts";
import { type Finding, finding } from "./finding.ts";

/** `signals` are all that are stored for the run; the rows of very old ones that were taken may be gone. */
export function checkSignals(run: Pick<Run, "id" | "signals">, signals: readonly Signal[]): Finding[] {
  const found: Finding[] = [];
  const { sent, kept } = signalCountsOf(run);
  for (const signal of signals) {
    const { number, value, takenAt, taskId } = signal;
    const brief = { ...signal, value: value === null ? null : "..." };
    if (number > sent) found.push(finding("signals-whole", run.id, `its signal ${number} is stored and it counts ${sent}`, brief));
    if ((takenAt === null) !== (value !== null) || (takenAt === null && taskId !== null))
      found.push(finding("signals-whole", run.id, `its signal ${number} is neither kept with its value nor taken`, brief));
  }
  const stored = signals.filter(({ takenAt }) => takenAt === null).length;
  if (stored !== kept) found.push(finding("signals-whole", run.id, `it counts ${kept} kept signals and ${stored} are stored`));
  return found;
}
