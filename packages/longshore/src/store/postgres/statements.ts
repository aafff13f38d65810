// Statements by their text, each with the name under which connections prepare it.

import type { Statement } from "./link.ts";

export class Statements {
  readonly #byText = new Map<string, Statement>();

  /** `sql` has a `?` for each value. */
  of(sql: string): Statement {
    const known = this.#byText.get(sql);
    if (known !== undefined) return known;
    let values = 0;
    const statement = { name: `s${this.#byText.size}`, text: sql.replaceAll("?", () => `$${++values}`) };
    this.#byText.set(sql, statement);
    return statement;
  }
}
