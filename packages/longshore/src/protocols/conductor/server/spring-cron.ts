// Cron expressions of the real server's scheduler (those of Spring), translated for our parser. The six fields are the same; some signs are
// not.

import { badRequest } from "./replies.ts";

const words: ReadonlyMap<string, string> = new Map([
  ["@yearly", "0 0 0 1 1 *"],
  ["@annually", "0 0 0 1 1 *"],
  ["@monthly", "0 0 0 1 * *"],
  ["@weekly", "0 0 0 * * 0"],
  ["@daily", "0 0 0 * * *"],
  ["@midnight", "0 0 0 * * *"],
  ["@hourly", "0 0 * * * *"],
]);

/** `path` begins the error. */
export function fromSpring(text: string, path: string): string {
  const whole = words.get(text.trim().toLowerCase()) ?? text.trim();
  const fields = whole.split(/\s+/);
  if (fields.length !== 6)
    throw badRequest(
      `${path} is ${JSON.stringify(text.slice(0, 100))}, expected six fields: second, minute, hour, day of the month, month and weekday.`,
    );
  const [second, minute, hour, day, month, weekday] = fields.map((field) => (field === "?" ? "*" : field)) as [
    ...[string, string, string],
    ...[string, string, string],
  ];
  // `5L` is the last Friday of a month.
  return [second, minute, hour, day, month, weekday.replace(/^(\w+)L$/i, "$1#L")].join(" ");
}
