// Definition files of workflow-graph among other formats: a map with `jobs`.

import type { DefinitionFormat } from "../../server-half.ts";
import { parseGraph } from "./file.ts";
import { dialectName } from "./source.ts";

export const format: DefinitionFormat = {
  dialect: dialectName,
  accepts: (keys) => keys.includes("jobs"),
  parse(read, file) {
    const { id, source, schedules, events, warnings } = parseGraph(read, file);
    return { name: id, source, schedules, events, warnings };
  },
};
