// Counts real executions of a job by the lines that its command leaves in a file, independent of what any server says.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Stage } from "../src/stage.ts";

export interface Executions {
  /** A shell command that leaves one line. */
  readonly mark: string;
  /** A shell condition: true from the nth execution on, once `mark` has run in it. */
  from(nth: number): string;
  count(): number;
}

export function countExecutions(stage: Stage): Executions {
  const file = join(stage.folder(), "executions");
  return {
    mark: `echo x >> ${file}`,
    from: (nth) => `[ "$(wc -l < ${file})" -ge ${nth} ]`,
    count: () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0),
  };
}
