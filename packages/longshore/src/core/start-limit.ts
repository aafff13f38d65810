// How many runs of a workflow may be open at once, for each value of a field of their input, and what happens to further starts.

import { LongshoreError } from "./errors.ts";
import { isObject } from "./json/json.ts";
import { isName } from "./names.ts";
import { shown } from "./text.ts";

/** What may happen to a start while other runs are open. A schedule has the same words for its ticks, and `allow`. */
export const overlaps = ["skip", "queue", "cancel-previous", "allow"] as const;
export type Overlap = (typeof overlaps)[number];

/** How many runs of a workflow may be open at once. */
export interface StartLimit {
  /** How many runs may be open at once. Default: 1. */
  readonly runs?: number;
  /**
   * The field of the input by which the runs are counted, such as `customer.id`: each value has its own runs. A dot separates the names of
   * nested fields. Runs without the field are counted together. Default: all runs of the workflow are counted together.
   */
  readonly key?: string;
  /**
   * What happens to a start when there are so many open runs. `queue`: the new run waits for its turn. `skip`: no run starts, and the caller
   * gets the newest open run. `cancel-previous`: the oldest open run is cancelled; more of them if the limit was lowered. Default: `queue`.
   */
  readonly overlap?: Exclude<Overlap, "allow">;
}

/** A limit with its defaults. */
export type CheckedLimit = Required<Pick<StartLimit, "runs" | "overlap">> & { readonly key: string | null };

/** Maximum of `runs`: their ids are in one row, which each start and each end writes. */
export const limitRunsMax = 100;
export const limitPathMax = 200;
export const limitOverlaps = ["queue", "skip", "cancel-previous"] as const;

/** Checks the option `limit` of a workflow. Throws LONGSHORE_BAD_DEFINITION, which names the field. */
export function startLimitOf(given: unknown, workflow: string, field = "limit"): StartLimit {
  if (!isObject(given)) throw bad(workflow, field, given, 'an object such as { runs: 1, key: "customer.id" }');
  const { runs, key, overlap, ...others } = given as { [key: string]: unknown };
  const [other] = Object.keys(others);
  if (other !== undefined) throw bad(workflow, `${field}.${other}`, others[other], "one of the fields runs, key, overlap");
  if (runs !== undefined && !(Number.isInteger(runs) && Number(runs) >= 1 && Number(runs) <= limitRunsMax))
    throw bad(workflow, `${field}.runs`, runs, `a whole number from 1 to ${limitRunsMax}`);
  if (key !== undefined && !isPath(key)) throw bad(workflow, `${field}.key`, key, pathExpected);
  if (overlap !== undefined && !limitOverlaps.some((each) => each === overlap))
    throw bad(workflow, `${field}.overlap`, overlap, `one of ${limitOverlaps.join(", ")}`);
  return given as StartLimit;
}

export function withDefaults({ runs = 1, key = null, overlap = "queue" }: StartLimit | CheckedLimit): CheckedLimit {
  return { runs, key, overlap };
}

export const pathExpected = `the path of a field of the input, such as customer.id, of at most ${limitPathMax} characters`;

/** Whether a text is the path of a field: names with dots between them. */
export function isPath(path: unknown): path is string {
  return typeof path === "string" && isName(path) && path.length <= limitPathMax && !path.split(".").includes("");
}

function bad(workflow: string, field: string, given: unknown, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `${field} of workflow ${workflow} is ${shown(given)}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
