// Counts real executions of a job: its command adds a line to a file. So the count does not depend on what a server reports.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Stage } from "../src/stage.ts";

export interface Executions {
  /** A shell command that adds one line to the file. */
  readonly mark: string;
  /** A shell condition that is true from the nth execution on. `mark` must run before it. */
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
