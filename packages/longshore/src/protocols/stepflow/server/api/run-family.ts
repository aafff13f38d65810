// The runs that belong together: a root, and all that was started on its behalf. They carry the root's id as their alias, so they are found
// by an index.

import type { Reader } from "../../../../engine/run/reader.ts";
import type { RunHead } from "../../../../engine/run/run.ts";
import { settingsOf } from "../../dialect/settings.ts";

/** Open runs of one family that are looked at: more than are ever going on at once. */
const openMax = 100_000;

/** Those of a root's family that are going on, without the root itself. */
export async function openFamily(reader: Reader, rootRunId: string): Promise<RunHead[]> {
  const found: RunHead[] = [];
  const { heads } = await reader.search({ aliases: [rootRunId], states: ["running", "paused"], offset: 0, limit: openMax });
  for await (const run of heads) found.push(run);
  return found;
}

/** Those that were started on behalf of a run, or of one that was. A run comes before those that it has started. */
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
