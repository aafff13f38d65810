// What is wrong with a definition, in the form of Conductor's `validationErrors`.

/** `path` is method, argument and property as Conductor's wire has them, such as `registerTaskDef.arg0[0].name`. */
export interface Violation {
  readonly path: string;
  readonly message: string;
  /** Only for texts, numbers and booleans, as a text. */
  readonly invalidValue?: string;
}

/** More faults than this in one answer help nobody. */
const violationsMax = 100;

/** Gathers what is wrong with one document. */
export class Violations {
  readonly list: Violation[] = [];

  add(path: string, message: string, invalidValue?: unknown): void {
    if (this.list.length >= violationsMax) return;
    const shown = typeof invalidValue === "string" || typeof invalidValue === "number" || typeof invalidValue === "boolean";
    this.list.push({ path, message, ...(shown ? { invalidValue: String(invalidValue) } : {}) });
  }
}

/** A definition, or the list of everything that is wrong with it. */
export type Checked<Model> = { readonly value: Model } | { readonly violations: readonly Violation[] };
