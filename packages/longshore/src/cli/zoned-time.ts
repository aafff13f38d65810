// Times of a schedule in its own time zone: a person compares them with the rule.

const two = "2-digit" as const;

/** `Sun 2026-03-29 03:00` in the zone, with seconds where there are any. */
export function zonedText(at: number, timeZone: string): string {
  const shape = { weekday: "short", year: "numeric", month: two, day: two, hour: two, minute: two, second: two } as const;
  const parts = new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", ...shape }).formatToParts(at);
  const part = (name: Intl.DateTimeFormatPartTypes) => parts.find(({ type }) => type === name)?.value ?? "";
  const seconds = part("second") === "00" ? "" : `:${part("second")}`;
  return `${part("weekday")} ${part("year")}-${part("month")}-${part("day")} ${part("hour")}:${part("minute")}${seconds}`;
}
