// Finds the numbers of a JSON text that a double would change: most whole numbers above 2^53, numbers with more than seventeen digits, and
// numbers that are too large or too small. Nearly all texts have none. For them, this reads one of every sixteen characters and makes one
// search.

export interface Stretch {
  readonly from: number;
  readonly end: number;
}

const none: readonly Stretch[] = [];

/** A double keeps every number of fifteen digits; with sixteen digits it may not. */
const longChars = 16;
/** Exponents of three digits: the range of a double ends at 1e308 and 1e-324. */
const largeExponent = /\d[eE][+-]?\d{3}/;

/**
 * Whether the text has this many digits and points in a row. Looks at one of every `longChars` characters, and at its neighbours only if it
 * is a digit or a point.
 */
function hasLongNumber(text: string): boolean {
  for (let at = longChars - 1; at < text.length; at += longChars) {
    if (!isDigitOrPoint(text.charCodeAt(at))) continue;
    let from = at;
    while (isDigitOrPoint(text.charCodeAt(from - 1))) from--;
    let end = at + 1;
    while (isDigitOrPoint(text.charCodeAt(end))) end++;
    if (end - from >= longChars) return true;
  }
  return false;
}

function isDigitOrPoint(code: number): boolean {
  return isDigit(code) || code === 0x2e;
}

/**
 * The positions of the changed numbers, in order. The text may be any text: invalid JSON stays invalid when these numbers are replaced.
 */
export function changedNumbers(text: string): readonly Stretch[] {
  return hasLongNumber(text) || largeExponent.test(text) ? scan(text) : none;
}

/** One pass; strings are skipped with `indexOf`. */
function scan(text: string): readonly Stretch[] {
  const changed: Stretch[] = [];
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = stringEnd(text, at);
    else if (isDigit(code)) {
      const end = numberEnd(text, at);
      if (end - at >= longChars || hasExponent(text, at, end)) {
        const from = text.charCodeAt(at - 1) === 0x2d ? at - 1 : at;
        if (isChanged(text, from, end) && !isName(text, end)) changed.push({ from, end });
      }
      at = end;
    } else at++;
  }
  return changed;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** The offset after the last character that may belong to the number. */
function numberEnd(text: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const code = text.charCodeAt(at);
    // + - . e E
    if (!isDigit(code) && code !== 0x2b && code !== 0x2d && code !== 0x2e && code !== 0x65 && code !== 0x45) return at;
  }
}

function hasExponent(text: string, from: number, end: number): boolean {
  for (let at = from + 1; at < end; at++) if ((text.charCodeAt(at) | 0x20) === 0x65) return true;
  return false;
}

/** A number as the name of a member is a mistake; replacing it by a string would hide the mistake. */
function isName(text: string, from: number): boolean {
  let at = from;
  while (text.charCodeAt(at) <= 0x20) at++;
  return text.charCodeAt(at) === 0x3a;
}

const numberShape = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** The shortest spelling of a double has at most this many digits, so a number with more digits is always changed. */
const doubleDigitsMax = 17;

/** Whether the number in the text differs from its double. */
function isChanged(text: string, from: number, end: number): boolean {
  numberShape.lastIndex = from;
  if (!numberShape.test(text) || numberShape.lastIndex !== end) return false;
  const digits = countDigits(text, from, end);
  if (digits > doubleDigitsMax) return true;
  const literal = text.slice(from, end);
  const value = Number(literal);
  if (!Number.isFinite(value)) return true;
  if (value === 0) return digits > 0;
  if (digits <= 15) return false;
  const shortest = String(value);
  // Most programs spell a double in this way.
  return shortest !== literal && digitsOf(literal) !== digitsOf(shortest);
}

/** The number of significant digits: the length of `digitsOf`, without building the text. */
function countDigits(text: string, from: number, end: number): number {
  let count = 0;
  let zeros = 0;
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if ((code | 0x20) === 0x65) break;
    if (code === 0x30) zeros++;
    else if (isDigit(code)) {
      count += count === 0 ? 1 : zeros + 1;
      zeros = 0;
    }
  }
  return count;
}

/** The significant digits: without sign, point, exponent and the zeros at both ends. */
function digitsOf(literal: string): string {
  const digits = (literal.split(/[eE]/, 1)[0] as string).replace(/[-.]/g, "");
  let first = 0;
  while (digits[first] === "0") first++;
  let end = digits.length;
  while (end > first && digits[end - 1] === "0") end--;
  return digits.slice(first, end);
}

/** The offset after the closing quote of the string that opens at `at`. */
function stringEnd(text: string, at: number): number {
  for (let next = text.indexOf('"', at + 1); next !== -1; next = text.indexOf('"', next + 1)) {
    let before = next - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    if ((next - before) % 2 === 1) return next + 1;
  }
  return text.length;
}
