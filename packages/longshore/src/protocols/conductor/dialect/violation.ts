// What is wrong with a definition, in the form of Conductor's `validationErrors`.

import { cutMiddle } from "../../../core/text.ts";

/** `path` is method, argument and property as Conductor's wire has them, such as `registerTaskDef.arg0[0].name`. */
export interface Violation {
  readonly path: string;
  readonly message: string;
  /** The value as a text. Only for texts, numbers and booleans. */
  readonly invalidValue?: string;
  /** The definition is valid for Conductor, but uses what this server does not have. */
  readonly isUnsupported?: true;
}

/** The message about a definition that is valid for Conductor, but uses what this server does not have. */
export class Unsupported {
  readonly text: string;

  constructor(what: string, more = "") {
    this.text = `${what} is not supported by this server${more}`;
  }
}

/** Maximum number of faults in one response; more do not help the reader. */
const violationsMax = 100;
/**
 * Maximum length of a message and of its value. Both may repeat a text of the definition, and all faults may repeat the same text of
 * megabytes.
 */
const charsMax = 4_096;

/** Gathers what is wrong with one document. */
export class Violations {
  readonly list: Violation[] = [];

  add(path: string, message: string | Unsupported, invalidValue?: unknown): void {
    if (this.list.length >= violationsMax) return;
    const shown = typeof invalidValue === "string" || typeof invalidValue === "number" || typeof invalidValue === "boolean";
    this.list.push({
      path,
      message: cutMiddle(typeof message === "string" ? message : message.text, charsMax),
      ...(shown ? { invalidValue: cutMiddle(String(invalidValue), charsMax) } : {}),
      ...(typeof message === "string" ? {} : { isUnsupported: true }),
    });
  }
}

/** A definition, or the list of everything that is wrong with it. */
export type Checked<Model> = { readonly value: Model } | { readonly violations: readonly Violation[] };
