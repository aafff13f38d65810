// What an evaluation may return. It is checked in the thread: the server never reads a result or an error that is too large.

import { jsonDepthMax } from "../../../../core/json/json.ts";
import { JsonScan } from "../../../../core/json/json-scan.ts";
import { type Evaluated, failureCharsMax, outputCharsMax, outputValuesMax } from "./evaluation.ts";

export function withinLimits(evaluated: Evaluated): Evaluated {
  if ("failed" in evaluated) return { ...evaluated, failed: evaluated.failed.slice(0, failureCharsMax) };
  const { output } = evaluated;
  if (output.length > outputCharsMax) return beyond(`${output.length} characters`, outputCharsMax);
  const scan = new JsonScan();
  scan.push(Buffer.from(output));
  if (scan.values > outputValuesMax) return beyond(`${scan.values} values`, outputValuesMax);
  return scan.deepest > jsonDepthMax ? beyond(`${scan.deepest} levels`, jsonDepthMax) : evaluated;
}

function beyond(size: string, max: number): Evaluated {
  return { failed: `its result has ${size}, which is more than the limit of ${max}`, isLimit: true };
}
