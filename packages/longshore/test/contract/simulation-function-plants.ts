// Faults of durable functions that are planted, to see whether the simulation finds them.

import type { Command, JournalEntry, TurnReport } from "../../src/core/turn.ts";

export type FunctionPlant =
  /** A replay gets the results in the order of the commands, not in the order in which they arrived. */
  | "results in another order"
  /** The journal keeps another value of a side effect than the function continued with. */
  | "another value of a side effect"
  /** A replay does not find the last command. */
  | "a lost command"
  /** The disk confirms commits that it does not make. */
  | "lost commits";

export function altered({ commands, ...report }: TurnReport): TurnReport {
  const value = (command: Command) => (command.kind === "local" ? { ...command, output: Number(command.output) + 0.5 } : command);
  return { ...report, commands: commands.map(value) };
}

export function planted(entries: readonly JournalEntry[], plant: FunctionPlant): readonly JournalEntry[] {
  if (plant === "a lost command") return entries.slice(0, -1);
  if (plant !== "results in another order") return entries;
  const places = entries.flatMap(({ result }) => result?.place ?? []).sort((one, other) => one - other);
  return entries.map((entry) =>
    entry.result === undefined ? entry : { ...entry, result: { ...entry.result, place: places.shift() ?? 0 } },
  );
}
