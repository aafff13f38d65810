// `on: { event: ... }` of a definition file: the events that start the workflow.

import { LongshoreError } from "../../../core/errors.ts";
import { type EventTrigger, triggersOf } from "../../../core/event-trigger.ts";
import type { Place } from "../../../core/file-place.ts";

const expected = "a name such as event: order.created, a list of them, or of { name: order.created, match: { total: 10 } }";

export function eventsOf(on: Place, workflow: string): EventTrigger[] {
  const place = on.kind === "map" ? on.entries().find(({ key }) => key === "event")?.value : undefined;
  if (place === undefined) return [];
  const items = place.kind === "list" ? place.items() : [place];
  return items.map((item) => {
    const given = item.kind === "map" ? (item.json() as { name?: unknown; match?: unknown }) : { name: item.text };
    if (item.kind !== "map" && item.kind !== "text") throw item.refuse("This is no event.", expected);
    const { name: event, ...others } = given;
    try {
      return triggersOf({ event, ...others }, workflow, "on.event")[0] as EventTrigger;
    } catch (error) {
      throw error instanceof LongshoreError ? item.refuse(error.message, error.detail.expected ?? expected) : error;
    }
  });
}
