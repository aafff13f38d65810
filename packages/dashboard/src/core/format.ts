// Times, durations, sizes and numbers as people read them.

import { signal } from "@preact/signals";
import { zone } from "./prefs.ts";

/** The time that relative times are compared with. It is updated once a second while the page is visible. */
export const now = signal(Date.now());

/** The clock of the server minus the one of this browser. */
export const clockOffset = signal(0);

export function tickClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now() + clockOffset.value;
  }, 1_000);
}

export function durationText(ms: number): string {
  if (ms < 0) return "0 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return twoParts(minutes, "min", Math.floor(seconds % 60), "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return twoParts(hours, "h", minutes % 60, "min");
  return twoParts(Math.floor(hours / 24), "d", hours % 24, "h");
}

function twoParts(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;
}

/** `12 s ago`, `in 3 min`. */
export function relativeText(at: number, from: number): string {
  const ms = from - at;
  const text = shortText(Math.abs(ms));
  if (Math.abs(ms) < 1_500) return "just now";
  return ms > 0 ? `${text} ago` : `in ${text}`;
}

/** One unit. */
function shortText(ms: number): string {
  const seconds = ms / 1_000;
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

const two = (value: number) => String(value).padStart(2, "0");

/** `2026-11-19 14:03:22`, in the chosen zone. */
export function timeText(at: number, { withMs = false, withDate = true } = {}): string {
  const date = new Date(at);
  const utc = zone.value === "utc";
  const [year, month, day] = utc
    ? [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()]
    : [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  const [hours, minutes, seconds] = utc
    ? [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
    : [date.getHours(), date.getMinutes(), date.getSeconds()];
  const ms = withMs ? `.${String(date.getUTCMilliseconds()).padStart(3, "0")}` : "";
  const time = `${two(hours)}:${two(minutes)}:${two(seconds)}${ms}`;
  return `${withDate ? `${year}-${two(month)}-${two(day)} ` : ""}${time}${utc ? " UTC" : ""}`;
}

const units = ["B", "kB", "MB", "GB", "TB"];

export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const grouped = new Intl.NumberFormat("en");

export function countText(count: number): string {
  return grouped.format(count);
}

/** `1 run`, `3 runs`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
