// Workflow definitions in Conductor's JSON among definition files of all formats: a map with `tasks`. They may also be written as YAML.

import type { Place } from "../../../core/file-place.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import type { JsonPath } from "../../../core/json/json-position.ts";
import type { DefinitionFormat } from "../../server-half.ts";
import { dialectName } from "./compile.ts";
import type { Violation } from "./violation.ts";
import { parseWorkflowDef } from "./workflow-def.ts";

/** The beginning of the paths of violations. */
const root = "workflow";

export const format: DefinitionFormat = {
  dialect: dialectName,
  accepts: (keys) => keys.includes("tasks"),
  /** The definition contains its name, by which other workflows run it. The name of the file has no meaning. */
  parse({ root: place, warnings }) {
    const checked = parseWorkflowDef(place.json(), root);
    if ("violations" in checked) throw refusalOf(place, checked.violations);
    return { name: checked.value.name, source: writeExact(checked.value), warnings };
  },
};

function refusalOf(place: Place, violations: readonly Violation[]): Error {
  const [first] = violations as readonly [Violation];
  const field = first.path.slice(root.length).replace(/^\./, "");
  const more = violations.length === 1 ? "" : ` (and ${violations.length - 1} more)`;
  return place.find(pathOf(field)).refuse(`${field === "" ? "" : `${field}: `}${first.message}${more}`, "a definition that can run");
}

/** `tasks[0].name` as a path. */
function pathOf(text: string): JsonPath {
  return [...text.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([whole, index]) => (index === undefined ? whole : Number(index)));
}
