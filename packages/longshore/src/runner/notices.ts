// Messages for the people who run a worker, as single lines. A repeated failure is reported once, then its end with the duration.

import type { Clock } from "../core/clock.ts";
import { formatDuration } from "../core/duration.ts";
import { toError } from "../core/errors.ts";

/** One line about the worker itself, for the people who run it. */
export type Notice = { readonly level: "info" | "warn" | "error"; readonly message: string };
/** Receives the notices of a worker. Default: one line each on standard error. */
export type Logger = (notice: Notice) => void;

/** All control characters except the line end. */
const controls = /[^\P{Cc}\n]/gu;

/** Standard error, because standard output belongs to the program's own results. */
export const stderrLogger: Logger = (notice) => {
  // A message may quote text of a server or a task. No control codes of this text must reach the terminal.
  process.stderr.write(`longshore ${notice.level}: ${notice.message.replace(controls, " ")}\n`);
};

/** The limit of lines of one transport per minute: a sender whose message is refused may send the next one at once. */
const noticesMax = 30;
const minuteMs = 60_000;

/** Passes on a limited number of notices per minute, and then how many were left out. */
export function sparing(clock: Clock, logger: Logger): Logger {
  let sinceMs = Number.NEGATIVE_INFINITY;
  let count = 0;
  return (notice) => {
    const now = clock.now();
    if (now - sinceMs >= minuteMs) {
      const left = count - noticesMax;
      if (left > 0) logger({ level: "warn", message: `${left} further messages like those above were left out.` });
      sinceMs = now;
      count = 0;
    }
    if (++count <= noticesMax) logger(notice);
  };
}

/** How many different failures are tracked; a worker has only a few. */
const episodesMax = 100;

export interface Episode {
  readonly sinceMs: number;
  readonly error: Error;
}

/** Failures that began and have not ended. */
export class Episodes {
  readonly #open = new Map<string, Episode>();
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #name: string;

  constructor(clock: Clock, logger: Logger, name: string) {
    this.#clock = clock;
    this.#logger = logger;
    this.#name = name;
  }

  /** The newest failure that has not ended, for `status()`. */
  get current(): Episode | undefined {
    return [...this.#open.values()].at(-1);
  }

  /** Returns true at the beginning of an episode. */
  failing(what: string, error: unknown): boolean {
    if (this.#open.has(what) || this.#open.size >= episodesMax) return false;
    const episode = { sinceMs: this.#clock.now(), error: toError(error) };
    this.#open.set(what, episode);
    this.#logger({ level: "warn", message: `${this.#name}: ${what} fails, trying on: ${episode.error.message}` });
    return true;
  }

  /** Returns how long the operation had failed, or undefined when it had not. */
  working(what: string): number | undefined {
    const episode = this.#open.get(what);
    if (episode === undefined) return undefined;
    this.#open.delete(what);
    const failedMs = this.#clock.now() - episode.sinceMs;
    this.#logger({ level: "info", message: `${this.#name}: ${what} works again after ${formatDuration(failedMs)}` });
    return failedMs;
  }
}
