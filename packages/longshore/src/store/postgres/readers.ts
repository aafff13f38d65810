// Connections that read. A statement is sent on the connection with the fewest waiting statements.

import { inWords } from "./errors.ts";
import { type Call, Link, Unsent } from "./link.ts";
import type { PgClient, RawRow } from "./package.ts";

export class Readers {
  readonly #links: readonly Link[];

  constructor(count: number, connect: () => Promise<PgClient>, responseMs?: number) {
    this.#links = Array.from({ length: count }, () => new Link(connect, responseMs));
  }

  /** Runs statements in a separate transaction. */
  run(calls: readonly Call[]): Promise<RawRow[][]> {
    return runOnce(this.#leastBusy(), calls);
  }

  /** A read changes nothing, so it is sent again when its connection was lost. */
  async read(calls: readonly Call[]): Promise<RawRow[][]> {
    const link = this.#leastBusy();
    try {
      return await link.run(calls);
    } catch (first) {
      if (first instanceof Unsent || isOfStatement(first)) throw inWords(first);
      return runOnce(link, calls);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.close()));
  }

  #leastBusy(): Link {
    return this.#links.reduce((best, link) => (link.pending < best.pending ? link : best));
  }
}

async function runOnce(link: Link, calls: readonly Call[]): Promise<RawRow[][]> {
  try {
    return await link.run(calls);
  } catch (error) {
    throw inWords(error);
  }
}

function isOfStatement(error: unknown): boolean {
  return (error as { severity?: unknown }).severity === "ERROR";
}
