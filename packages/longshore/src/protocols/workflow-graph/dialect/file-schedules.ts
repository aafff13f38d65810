// `on: { schedule: [...] }` of a definition file: each entry is a schedule that starts the workflow.

import { LongshoreError } from "../../../core/errors.ts";
import { fields, integer, listOf, textOf } from "../../../core/file-fields.ts";
import type { Place } from "../../../core/file-place.ts";
import { checkScheduleName, type GivenRules, rulesOf } from "../../../engine/schedule/rules.ts";
import type { DeclaredSchedule } from "../../../engine/schedule/store.ts";

/** More in one file is probably generated; each has a row and a deadline. */
const schedulesMax = 100;
const expected = 'a list such as schedule: [{ cron: "0 3 * * *", timezone: Europe/Berlin }]';
const texts = ["cron", "timezone", "tickField", "overlap", "catchUp"] as const;
/** Texts, or numbers of milliseconds. */
const amounts = ["every", "anchor", "at", "catchUpWindow", "jitter"] as const;

/** Warns of `schedule` in a place where it cannot have times. The reference reads such files, and starts nothing for them. */
export function warnOfBareSchedule(place: Place): void {
  if (place.text === "schedule") place.warn(`\`schedule\` has no times here, so it starts nothing: give it ${expected}`);
}

/** `workflow` is the name under which the file is defined. A schedule without a name has this one; further ones have a number. */
export function schedulesOf(on: Place, workflow: string): DeclaredSchedule[] {
  const place = on.kind === "map" ? on.entries().find(({ key }) => key === "schedule") : undefined;
  if (place === undefined) return [];
  if (place.value.kind === "null") {
    place.at.warn(`\`schedule\` has no times, so it starts nothing: give it ${expected}`);
    return [];
  }
  const items = listOf(place.value, expected);
  if (items.length > schedulesMax)
    throw place.at.refuse(`There are ${items.length} schedules in the file.`, `at most ${schedulesMax}; others can be made by themselves`);
  const taken = new Set<string>();
  return items.map((item, at) => {
    const schedule = scheduleOf(item, { workflow, name: at === 0 ? workflow : `${workflow}-${at + 1}` });
    if (taken.has(schedule.name)) throw item.refuse(`Two schedules have the name ${schedule.name}.`, "another name");
    taken.add(schedule.name);
    return schedule;
  });
}

function scheduleOf(place: Place, { workflow, name: otherwise }: { workflow: string; name: string }): DeclaredSchedule {
  if (place.kind !== "map") throw place.refuse("A schedule is a map.", "a map with cron, every or at");
  const given = fields(place, ["name", "input", "queueMax", ...texts, ...amounts]);
  const rules: Record<string, string | number> = { workflow };
  for (const key of texts) {
    const value = given.get(key);
    if (value !== undefined) rules[key] = textOf(value, "a text");
  }
  for (const key of amounts) {
    const value = given.get(key);
    if (value !== undefined) rules[key] = value.kind === "number" ? (value.value as number) : textOf(value, "a text or milliseconds");
  }
  const queueMax = given.get("queueMax");
  if (queueMax !== undefined) rules.queueMax = integer(queueMax);
  const named = given.get("name");
  const name = named === undefined ? otherwise : textOf(named, "a text");
  const input = JSON.stringify(given.get("input")?.json() ?? (rules.tickField === undefined ? null : {}));
  try {
    checkScheduleName(name);
    rulesOf(rules as unknown as GivenRules, input);
  } catch (error) {
    if (!(error instanceof LongshoreError)) throw error;
    const { field = "", expected: right = "" } = error.detail;
    throw (given.get(field) ?? place).refuse(error.message, right);
  }
  return { name, rules: rules as unknown as GivenRules, input, place: place.position };
}
