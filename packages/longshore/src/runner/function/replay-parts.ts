// The types of what a durable function in memory receives and returns.

import type { Json } from "../../core/json/json.ts";
import type { Command, CommandResult, JournalEntry } from "../../core/turn.ts";
import type { Steady } from "./server-time.ts";
import type { ValueLimit } from "./value-limit.ts";

/** A command without what this class adds. */
export type Asked = Omit<Command, "node" | "after">;

/** The result of a side effect. */
export type LocalResult = { readonly output: Json } | { readonly error: string };

/** How a turn continues after a report in the middle of it. */
export interface GoesOn {
  /** Results that the server has numbered. */
  readonly results: readonly CommandResult[];
  /** The time of the server. */
  readonly now?: number;
  /** No other side effect may begin in this turn. */
  readonly stop: boolean;
}

/** Reports commands in the middle of a turn. */
export type Flush = () => Promise<GoesOn>;

/** Where the function begins. */
export interface Beginning {
  readonly input: Json;
  readonly startedAt: number;
  /** Results up to this number belong to an earlier life of the run. */
  readonly after: number;
  /** The commands that the run has already, by number. */
  readonly journal: ReadonlyMap<number, JournalEntry>;
  /** Only compares the code with the journal: side effects that are not in the journal do not run. */
  readonly isCheck?: boolean;
  /** The size that a value of a command may have. A command with a larger one fails at once. */
  readonly limit?: ValueLimit | undefined;
  readonly steady?: Steady | undefined;
}
