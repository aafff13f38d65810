// Families of runs: a root and all runs that were started for it. They have the root's id as an alias, so an index finds them.

import type { Reader } from "../../../../engine/run/reader.ts";
import type { RunHead } from "../../../../engine/run/run.ts";
import { settingsOf } from "../../dialect/settings.ts";

/** Maximum number of open runs of one family that are read: more than ever run at the same time. */
const openMax = 100_000;

/** The open runs of a root's family, without the root itself. */
export async function openFamily(reader: Reader, rootRunId: string): Promise<RunHead[]> {
  const found: RunHead[] = [];
  const { heads } = await reader.search({ aliases: [rootRunId], states: ["running", "paused"], offset: 0, limit: openMax });
  for await (const run of heads) found.push(run);
  return found;
}

/** The open descendants of a run. A run comes before the runs that it started. */
export async function openDescendants(reader: Reader, run: RunHead): Promise<RunHead[]> {
  const family = await openFamily(reader, settingsOf(run).rootRunId ?? run.id);
  const depthOf = (each: RunHead) => settingsOf(each).depth ?? 0;
  const inside = new Set([run.id]);
  return family
    .sort((a, b) => depthOf(a) - depthOf(b))
    .filter((each) => {
      const { parentRunId } = settingsOf(each);
      if (parentRunId === undefined || !inside.has(parentRunId)) return false;
      inside.add(each.id);
      return true;
    });
}
