// JSON whose numbers keep their digits: a number that JavaScript cannot represent exactly is kept as its text.

/** A number as it was written. */
export class Digits {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): unknown {
    const raw = (JSON as unknown as { rawJSON?: (text: string) => unknown }).rawJSON;
    return raw === undefined ? Number(this.text) : raw(this.text);
  }
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

const keepDigits: Reviver = (_key, value, context) => {
  if (typeof value !== "number" || context?.source === undefined) return value;
  const isExact = Number.isSafeInteger(value) || String(value) === context.source;
  // 1.50 and 1.5 are the same number. With more than 15 digits, two texts may be different numbers.
  return isExact || context.source.length <= 16 ? value : new Digits(context.source);
};

/** Only texts with a long sequence of digits need the slower way. */
export function exactJson(text: string): unknown {
  return /\d{16}/.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
}
