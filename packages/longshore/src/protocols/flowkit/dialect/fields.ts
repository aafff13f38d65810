// Reads the fields of a submitted document. A value of the wrong type is refused with its path, the value and what is expected. Null counts
// as absent, as in the reference.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { shown } from "../../../core/text.ts";

/** The shortest name that is compared. Too many shorter words differ by only one letter. */
const lettersMin = 4;

/** Called with the path of each field that has no effect. */
export type Ignored = (field: string) => void;

export class Fields {
  readonly at: string;
  readonly #object: JsonObject;
  readonly #ignored: Ignored;

  private constructor(object: JsonObject, at: string, ignored: Ignored) {
    this.#object = object;
    this.at = at;
    this.#ignored = ignored;
  }

  static of(value: unknown, at: string, expected: string, ignored: Ignored): Fields {
    if (!isObject(value)) throw refusal(at, `is ${quoted(value)}, expected ${expected}`);
    return new Fields(value as JsonObject, at, ignored);
  }

  /** Null when the field is absent. */
  value(name: string): Json {
    return (Object.hasOwn(this.#object, name) ? this.#object[name] : null) ?? null;
  }

  /**
   * Refuses an unknown field whose name looks like a misspelt known name. Other unknown fields may belong to the user: they are accepted
   * and reported, except those in `withoutMeaning`.
   */
  noneMisspelt(names: readonly string[], withoutMeaning: readonly string[] = []): this {
    for (const field of Object.keys(this.#object)) {
      if (names.includes(field) || withoutMeaning.includes(field)) continue;
      const meant = names.find((name) => isMisspelt(field, name));
      if (meant !== undefined) throw this.refuse(field, `is not known here, expected ${meant}`);
      this.#ignored(`${this.at}.${field}`);
    }
    return this;
  }

  text(name: string, { charsMax }: { charsMax?: number }): string {
    const value = this.value(name);
    if (typeof value !== "string" || value === "") throw this.#wrong(name, value, "a text");
    if (charsMax !== undefined && value.length > charsMax) {
      throw this.refuse(name, `has ${value.length} characters, expected at most ${charsMax}`);
    }
    return value;
  }

  /** A list of distinct texts. */
  texts(name: string): string[] {
    const texts = this.list(name).map((value, index) => {
      if (typeof value !== "string" || value === "") throw this.#wrong(`${name}[${index}]`, value, "a text");
      return value;
    });
    return [...new Set(texts)];
  }

  list(name: string): Json[] {
    const value = this.value(name) ?? [];
    if (!Array.isArray(value)) throw this.#wrong(name, value, "a list");
    return value;
  }

  object(name: string): Fields {
    return Fields.of(this.value(name) ?? {}, `${this.at}.${name}`, "an object", this.#ignored);
  }

  objectOrNull(name: string): JsonObject | null {
    const value = this.value(name);
    if (value !== null && !isObject(value)) throw this.#wrong(name, value, "an object");
    return value as JsonObject | null;
  }

  whole(name: string, absent: number, max: number): number {
    const value = this.value(name) ?? absent;
    if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max) return value as number;
    throw this.#wrong(name, value, `a whole number from 0 to ${max}`);
  }

  number(name: string, absent: number, max: number): number {
    const value = this.value(name) ?? absent;
    if (typeof value === "number" && value >= 0 && value <= max) return value;
    throw this.#wrong(name, value, `a number from 0 to ${max}`);
  }

  flag(name: string): boolean {
    const value = this.value(name) ?? false;
    if (typeof value !== "boolean") throw this.#wrong(name, value, "true or false");
    return value;
  }

  refuse(name: string, message: string): LongshoreError {
    return refusal(`${this.at}.${name}`, message);
  }

  #wrong(name: string, value: unknown, expected: string): LongshoreError {
    return this.refuse(name, `is ${quoted(value)}, expected ${expected}`);
  }
}

/** Refuses the value at `field`. */
export function refusal(field: string, message: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `${field} ${message}.`, { detail: { field } });
}

/** Different case, dashes for underscores, or one letter wrong, missing or added. */
function isMisspelt(field: string, name: string): boolean {
  const [one, other] = [field, name].map((text) => text.replace(/[_-]/g, "").toLowerCase()) as [string, string];
  if (one === other) return true;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  const rests = [
    [one.slice(same + 1), other.slice(same + 1)],
    [one.slice(same + 1), other.slice(same)],
    [one.slice(same), other.slice(same + 1)],
  ];
  return Math.min(one.length, other.length) >= lettersMin && rests.some(([left, right]) => left === right);
}

function quoted(value: unknown): string {
  return value === null || value === undefined ? "absent" : shown(value);
}
