// `taskToDomain` maps a task type, or `*` for all types, to domains separated by commas. It comes from the request that starts a run, or
// from the task that starts a child run.

import type { JsonObject } from "../../../core/json/json.ts";
import { ExactNumber } from "../../../core/json/json-exact.ts";
import { kindOf, shown } from "../../../core/text.ts";
import { lanesMax } from "../../../engine/board/lane-bounds.ts";
import { nameFault } from "./task-def.ts";
import { type Checked, Violations } from "./violation.ts";

/** The maximum number of tasks in a definition. */
const typesMax = 5_000;

export type TaskToDomain = { readonly [taskType: string]: string };

export function domainsOf(list: string): string[] {
  return list
    .split(",")
    .map((domain) => domain.trim())
    .filter((domain) => domain !== "");
}

/** Numbers and booleans are read as texts, as Conductor's JSON reader does. Null values are left out. Stops at the first fault. */
export function readTaskToDomain(given: JsonObject, path: string): Checked<TaskToDomain> {
  const entries = Object.entries(given).filter(([, value]) => value !== null);
  const fault = entries.length > typesMax ? `has ${entries.length} task types, at most ${typesMax} are allowed` : entryFault(entries);
  if (fault === undefined) return { value: Object.fromEntries(entries.map(([type, value]) => [type, String(value)])) };
  const violations = new Violations();
  violations.add(path, `taskToDomain ${fault}`);
  return { violations: violations.list };
}

function entryFault(entries: readonly (readonly [string, unknown])[]): string | undefined {
  for (const [type, value] of entries) {
    const fault = nameFault(type, "a task type") ?? listFault(value);
    if (fault !== undefined) return `of ${shown(type)}: ${fault}`;
  }
  return undefined;
}

function listFault(value: unknown): string | undefined {
  if (typeof value === "object" && !(value instanceof ExactNumber)) return `is ${kindOf(value)}, expected a text`;
  const domains = domainsOf(String(value));
  if (domains.length > lanesMax) return `has ${domains.length} domains, at most ${lanesMax} are allowed`;
  for (const domain of domains) {
    const fault = nameFault(domain, "a domain");
    if (fault !== undefined) return fault;
  }
  return undefined;
}
