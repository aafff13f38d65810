// Times of a schedule in its own time zone: a person compares them with the rule.

const two = "2-digit" as const;

/** `Sun 2026-03-29 03:00` in the zone, with seconds where there are any. */
export function zonedText(at: number, timeZone: string): string {
  const shape = { weekday: "short", year: "numeric", month: two, day: two, hour: two, minute: two, second: two } as const;
  const fields = new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", ...shape }).formatToParts(at);
  const field = (name: Intl.DateTimeFormatPartTypes) => fields.find(({ type }) => type === name)?.value ?? "";
  const seconds = field("second") === "00" ? "" : `:${field("second")}`;
  return `${field("weekday")} ${field("year")}-${field("month")}-${field("day")} ${field("hour")}:${field("minute")}${seconds}`;
}
