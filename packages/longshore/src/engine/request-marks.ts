// Records which changes a request has made. When a node gets no answer to a request, it sends the request again, but the first one may have
// been performed. So a change that must not happen twice stores a mark in its transaction. The repeated request finds the mark. Only
// requests that nodes pass on are marked.

import { createHash } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import { idFrom } from "../core/ids.ts";
import type { TrackedRequest } from "../core/request-ids.ts";
import { Additions } from "./cached-rows.ts";
import type { GroupCommit } from "./commit.ts";
import type { RowStore, TableRows } from "./rows.ts";
import { type Property, propertyTable } from "./tables/endings.ts";
import type { ReadTx, Tx } from "./tx.ts";

export interface PerformedDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly clock: Clock;
  /** The request that is being performed. Default: none is tracked. */
  readonly request?: () => TrackedRequest | undefined;
}

const prefix = "performed ";
/** How long marks are kept: far longer than a node waits for an owner before it gives up a request. */
const keptMs = 3_600_000;
/** How often old marks are removed. One transaction removes the marks of one minute. */
const pruneMs = 60_000;
/** The digits of an id that hold its time. */
const timeDigits = 10;

export class Performed {
  readonly #commit: GroupCommit;
  readonly #clock: Clock;
  readonly #request: () => TrackedRequest | undefined;
  readonly #properties: TableRows<Property>;
  readonly #marks: Additions<Property>;
  readonly #removals: Additions<string>;
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor({ store, commit, clock, request = () => undefined }: PerformedDeps) {
    this.#commit = commit;
    this.#clock = clock;
    this.#request = request;
    const properties = store.table(propertyTable);
    this.#properties = properties;
    this.#marks = new Additions(commit, (mark) => properties.write(mark));
    this.#removals = new Additions(commit, (below) => properties.remove({ by: ["name"], above: [prefix], below: [below] }));
  }

  /**
   * Performs `work`, once for each request and name. When the request is performed again, `again` returns the result instead. `kept` is the
   * earlier result, if it was a boolean or a number.
   */
  once<T>(name: string, work: (tx: Tx) => T, again: (tx: ReadTx, kept: T) => T): Promise<T> {
    const request = this.#request();
    if (request === undefined) return this.#commit.run(work);
    const mark = nameOf(request.id, name);
    return this.#commit.run((tx) => {
      const found = request.isRepeat ? this.#properties.get(tx, mark) : null;
      if (found !== null) return again(tx, JSON.parse(found.value) as T);
      const result = work(tx);
      const isPlain = typeof result === "boolean" || typeof result === "number";
      this.#keep(tx, { name: mark, value: isPlain ? JSON.stringify(result) : "null" });
      return result;
    });
  }

  /** The answer that was kept for this request. */
  async answer(id: string): Promise<string | null> {
    return (await this.#commit.read((tx) => this.#properties.get(tx, nameOf(id, "answer"))))?.value ?? null;
  }

  /** Stores the answer to a request, for requests that would get another answer if they were performed again. */
  keepAnswer(id: string, answer: string): Promise<void> {
    return this.#commit.run((tx) => this.#keep(tx, { name: nameOf(id, "answer"), value: answer }));
  }

  #keep(tx: Tx, mark: Property): void {
    this.#marks.add(tx, mark);
    const [now, before] = [this.#clock.now(), this.#prunedAt];
    if (now < before + pruneMs) return;
    this.#prunedAt = now;
    tx.undo(() => {
      this.#prunedAt = before;
    });
    this.#removals.add(tx, `${prefix}${idFrom("", Math.max(0, now - keptMs)).slice(0, timeDigits)}`);
  }
}

/** Performs changes that must not happen twice. */
export type Once = Pick<Performed, "once">;

/** The same for a server on which no request is tracked: changes are performed without marks. */
export function unmarked(commit: GroupCommit): Once {
  return { once: (_name, work) => commit.run(work) };
}

/**
 * The name of a mark. Marks sort by the time of their request. `name` may be long, and the length of an index entry is limited, so it is
 * hashed.
 */
function nameOf(id: string, name: string): string {
  return `${prefix}${id} ${createHash("sha256").update(name).digest("hex").slice(0, 32)}`;
}
