// A time for people, in the time zone of the terminal.

const dayMs = 86_400_000;

/** `14:30` for a time of the same day, with seconds within the next minutes; otherwise with the date. */
export function timeText(at: number, now: number): string {
  const [then, today] = [new Date(at), new Date(now)];
  const clock = `${two(then.getHours())}:${two(then.getMinutes())}${Math.abs(at - now) < 600_000 ? `:${two(then.getSeconds())}` : ""}`;
  if (Math.abs(at - now) < dayMs && then.getDate() === today.getDate()) return clock;
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${clock}`;
}

/**
 * The time zone of the terminal, such as `Europe/Berlin`. It is printed with times, because the rule of a schedule may have another zone.
 */
export function terminalZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
