// A file to which workers add a line for each execution. The lines stay when a worker dies.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Stage } from "./stage.ts";

export interface Marks {
  readonly file: string;
  /** How often each number was executed. */
  counts(): Map<number, number>;
}

export function openMarks(stage: Stage): Marks {
  const file = join(stage.folder(), "marks");
  return {
    file,
    counts() {
      const counts = new Map<number, number>();
      const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
      for (const line of lines) counts.set(Number(line), (counts.get(Number(line)) ?? 0) + 1);
      return counts;
    },
  };
}
