// Starts that come close together, in a simulation. No accepted start may be lost: its run exists, and has the input of the start that was
// accepted last before it began.

import { debouncePrefix } from "../../src/engine/run/gate.ts";
import { isRunOpen, type Run } from "../../src/engine/run/run.ts";
import type { Started } from "../../src/engine/run/store.ts";
import { codeDialect } from "../../src/protocols/longshore/dialect/dialect.ts";
import type { Random } from "../faults/random.ts";
import type { Stored } from "./simulation-disk.ts";
import { broken } from "./simulation-model.ts";
import type { Process } from "./simulation-process.ts";
import type { Workflow } from "./simulation-story.ts";

/** A start that a client sends, and sends again with its key when it got no answer. */
interface Start {
  readonly input: string;
  readonly key: string;
  /** When it was first sent, and when it was last answered or its answer was lost; counted in such events. */
  readonly sent: number;
  answered: number;
  /** The run that an answer has named. */
  run: string | null;
  /** It may have been performed. */
  isPossible: boolean;
}

interface Deps {
  readonly random: Random;
  ask(what: string, request: (process: Process) => Promise<Started>): Promise<{ value: Started; from: Process } | "refused" | "unknown">;
}

const name = "saved";
const groups = ["a", "b"] as const;
/** Rows of debounced starts are in the table of gates. */
export const isDebounce = ({ name: row }: { readonly name: string }) => row.startsWith(debouncePrefix);

export function makeDebounced(random: Random, lane: string): Workflow {
  const periodMs = random.pick([60, 500, 2_000]) as number;
  const debounce = { key: "of", periodMs, ...(random.chance(0.5) ? { atMostMs: periodMs * 2 } : {}) };
  const limit = random.chance(0.3) ? { limit: { key: "of" } } : {};
  const steps = [{ id: "s0", task: lane, input: null }];
  return { name, dialect: codeDialect, source: JSON.stringify({ name, steps, output: null, debounce, ...limit }) };
}

export class DebouncedStarts {
  readonly #deps: Deps;
  readonly #starts: Start[] = [];
  #events = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** A new start, or one that got no answer once more. */
  async send(): Promise<Started | undefined> {
    const { random, ask } = this.#deps;
    const unanswered = this.#starts.filter(({ run, answered }) => run === null && answered > 0 && Number.isFinite(answered));
    const start = (random.chance(0.3) ? random.pick(unanswered) : undefined) ?? this.#made();
    const isRepeat = start.answered > 0;
    const { input, key } = start;
    const isPossible = start.isPossible;
    start.isPossible = true;
    start.answered = Number.POSITIVE_INFINITY;
    const answer = await ask(`start ${name} ${input}`, (process) => process.runs.start({ workflow: name, input, key }));
    start.answered = ++this.#events;
    if (answer === "refused") start.isPossible = isPossible;
    // After a crash, memory no longer has what the disk has.
    if (typeof answer === "string" || !answer.from.alive) return undefined;
    const { run } = answer.value;
    if (!isRepeat && run.input !== input) throw broken(`start ${key} was accepted by ${run.id}, which has the input ${run.input}`);
    start.run = run.id;
    return answer.value;
  }

  #made(): Start {
    const key = `${name}-${this.#starts.length}`;
    const input = JSON.stringify({ of: this.#deps.random.pick(groups), start: key });
    const start: Start = { input, key, sent: ++this.#events, answered: 0, run: null, isPossible: false };
    this.#starts.push(start);
    return start;
  }

  /** Compares the stored runs with the starts that were accepted. */
  check(runs: ReadonlyMap<string, Run>): void {
    const byInput = new Map(this.#starts.map((start) => [start.input, start]));
    for (const { id, workflow, input } of runs.values()) {
      const last = byInput.get(input);
      if (workflow !== name) continue;
      if (last?.isPossible !== true) throw broken(`run ${id} has the input of a start that was refused: ${input}`);
      if (last.run !== null && last.run !== id) throw broken(`start ${last.key} was accepted by ${last.run}, and ${id} has its input`);
      const lost = this.#starts.find(({ run, sent }) => run === id && sent > last.answered);
      if (lost !== undefined) throw broken(`start ${lost.key} was accepted by ${id}, which has the input of the earlier start ${last.key}`);
    }
    for (const { run, key } of this.#starts)
      if (run !== null && !runs.has(run)) throw broken(`start ${key} was accepted by ${run}, which is gone`);
  }
}

/** Each row names a run that waits for further starts, and each such run has a row. */
export function checkDebounce({ gates, runs }: Stored): void {
  const named = gates.filter(isDebounce).flatMap(({ open }) => open);
  const waiting = [...runs.values()].filter((run) => run.workflow === name && isRunOpen(run.state) && run.startAt !== null);
  const ids = waiting.map(({ id }) => id);
  if (named.toSorted().join() !== ids.toSorted().join())
    throw broken(`the rows of debounced starts name ${named}, and these runs wait for further starts: ${ids}`);
}
