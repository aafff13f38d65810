// Recognises flows among definition files of all formats: a map with `steps` or `output`.

import type { DefinitionFormat } from "../../server-half.ts";
import { parseFlow } from "./file.ts";
import { dialectName } from "./source.ts";

export const format: DefinitionFormat = {
  dialect: dialectName,
  accepts: (keys) => keys.includes("steps") || keys.includes("output"),
  parse: parseFlow,
};
