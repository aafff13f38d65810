// Places that callers keep for a long time, such as those of readers that follow all changes. There are few of them, and one token gets
// only a share: otherwise one program that never closes its streams would keep all others out.

import { LongshoreError } from "./errors.ts";

export class TokenPlaces {
  /** The places of one token: a quarter, as for requests in progress. */
  readonly tokenMax: number;
  readonly #max: number;
  readonly #what: string;
  readonly #ofTokens = new Map<string, number>();
  #used = 0;

  /** `what` names those who use the places, in the plural, for the text of the refusal. */
  constructor(max: number, what: string) {
    this.#max = max;
    this.#what = what;
    this.tokenMax = Math.max(1, Math.floor(max / 4));
  }

  /**
   * Throws LONGSHORE_LIMIT when the caller gets no place. The returned function takes the place until the signal aborts or the caller
   * leaves. `token` is the name of the caller's token. On a server without tokens, all callers share all places.
   */
  enter(token: string | undefined): (gone: AbortSignal) => () => void {
    if (this.#used >= this.#max)
      throw new LongshoreError("LONGSHORE_LIMIT", `There are ${this.#max} ${this.#what} already, which is the limit.`);
    if (token !== undefined && (this.#ofTokens.get(token) ?? 0) >= this.tokenMax) {
      const message = `There are ${this.tokenMax} ${this.#what} with this token already, which is the limit of one token.`;
      throw new LongshoreError("LONGSHORE_LIMIT", message);
    }
    return (gone) => {
      if (gone.aborted) return () => {};
      let isIn = true;
      const leave = () => {
        if (isIn) this.#count(token, -1);
        isIn = false;
      };
      this.#count(token, 1);
      gone.addEventListener("abort", leave, { once: true });
      return leave;
    };
  }

  #count(token: string | undefined, change: number): void {
    this.#used += change;
    if (token === undefined) return;
    const used = (this.#ofTokens.get(token) ?? 0) + change;
    if (used > 0) this.#ofTokens.set(token, used);
    else this.#ofTokens.delete(token);
  }
}
