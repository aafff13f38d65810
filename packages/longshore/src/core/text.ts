// Texts for people: cutting to a limit, values inside messages, counted things; and addresses that people write.

import { ExactNumber } from "./json/json-exact.ts";

const cutMark = "\n... cut here ...\n";

/** At most `max` characters of `text`, from its start and its end: the start shows what failed, the end shows why. */
export function cutMiddle(text: string, max: number): string {
  if (text.length <= max) return text;
  if (max <= cutMark.length) return wholeHead(text, max);
  const room = max - cutMark.length;
  const head = wholeHead(text, Math.ceil(room / 2));
  const tail = wholeTail(text, Math.floor(room / 2));
  return head + cutMark + tail;
}

/** The last `max` characters of `text`. */
export function cutTail(text: string, max: number): string {
  return text.length <= max ? text : wholeTail(text, max);
}

/** Enough to recognise a value of a request. */
const shownCharsMax = 100;

/** A wrong value, as text for an error message. */
export function shown(value: unknown): string {
  if (value === undefined) return "missing";
  const text = jsonHead(value, shownCharsMax);
  return text.length > shownCharsMax ? `${wholeHead(text, shownCharsMax)}...` : text;
}

/** The value as JSON, or slightly more than its first `max` characters. Reads no more of the value than that, regardless of its size. */
function jsonHead(value: unknown, max: number): string {
  let text = "";
  const write = (inner: unknown): void => {
    if (typeof inner === "string") text += JSON.stringify(inner.slice(0, max + 1));
    // JSON has no NaN and no infinity: JSON.stringify would show them as null.
    else if (typeof inner === "number") text += String(inner);
    else if (typeof inner !== "object" || inner === null || hasOwnForm(inner)) text += JSON.stringify(inner) ?? String(inner);
    else {
      const isList = Array.isArray(inner);
      text += isList ? "[" : "{";
      let first = true;
      for (const key in inner) {
        if (text.length > max) return;
        text += `${first ? "" : ","}${isList ? "" : `${JSON.stringify(key.slice(0, max + 1))}:`}`;
        write((inner as { [key: string]: unknown })[key]);
        first = false;
      }
      text += isList ? "]" : "}";
    }
  };
  write(value);
  return text;
}

/** Whether the value has a `toJSON` of its own: an ExactNumber or a date. Data from outside contains no functions. */
function hasOwnForm(inner: object): boolean {
  return "toJSON" in inner && typeof inner.toJSON === "function";
}

/** The kind of a value, for messages where the value itself would be too long or too short. */
export function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (value instanceof ExactNumber) return "a number";
  return Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** An address or a path without its trailing slashes. */
export function withoutEndSlashes(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "/") end--;
  return text.slice(0, end);
}

/** `1 step`, `2 steps`. */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

// A cut inside a surrogate pair would leave a text that some JSON readers refuse.
export function wholeHead(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

function wholeTail(text: string, length: number): string {
  const start = text.length - length;
  const first = text.charCodeAt(start);
  return text.slice(first >= 0xdc00 && first <= 0xdfff ? start + 1 : start);
}
