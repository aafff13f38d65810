// The rows that a decision in progress has seen so far: decisions.ts loads them.

import type { Json } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import type { TaskRow } from "../board/task.ts";
import type { Frontier } from "./decide.ts";
import type { DoneWork } from "./dialect.ts";
import type { NextJournal } from "./driven-journal.ts";
import { LazyMap } from "./lazy-map.ts";
import type { RestartPlan } from "./restart-plan.ts";
import type { Join, Run } from "./run.ts";

export class Loaded implements Frontier {
  readonly run: Run;
  readonly joins = new LazyMap<number, Join | null>();
  readonly #outputs = new LazyMap<number, Json>();
  readonly #chars = new LazyMap<number, number>();
  readonly tasks = new LazyMap<number, TaskRow | null>();
  readonly documents = new LazyMap<string, Json>();
  readonly works = new LazyMap<string, DoneWork>();
  all: ReadonlyMap<number, TaskRow> | undefined;
  again: RestartPlan | undefined;
  next: NextJournal | undefined;

  constructor(run: Run) {
    this.run = run;
  }

  join(node: number): Join | null | undefined {
    return this.joins.get(node);
  }

  output(node: number): Json | undefined {
    return this.#outputs.get(node);
  }

  /** Adds the JSON text of an output. Returns the number of characters that were not read before. */
  addOutput(node: number, text: string | null): number {
    if (this.#outputs.has(node)) return 0;
    this.#outputs.set(node, text === null ? null : (parseExact(text) as Json));
    const chars = text === null ? 0 : text.length;
    this.#chars.set(node, chars);
    return chars;
  }

  chars(node: number): number {
    return this.#chars.get(node) ?? 0;
  }

  record(node: number): TaskRow | null | undefined {
    const task = this.tasks.get(node);
    return task === undefined && this.all !== undefined ? (this.all.get(node) ?? null) : task;
  }

  records(): ReadonlyMap<number, TaskRow> | undefined {
    return this.all;
  }

  restart(): RestartPlan | undefined {
    return this.again;
  }

  journal(): NextJournal | undefined {
    return this.next;
  }

  document(kind: string, name: string): Json | undefined {
    return this.documents.get(documentKey(kind, name));
  }

  made(key: string): Json | undefined {
    const done = this.works.get(key);
    if (done !== undefined && "error" in done) throw done.error;
    return done?.value;
  }

  get size(): number {
    return (
      this.joins.size +
      this.#outputs.size +
      this.tasks.size +
      this.documents.size +
      this.works.size +
      (this.all === undefined ? 0 : 1) +
      (this.again === undefined ? 0 : 1) +
      (this.next === undefined ? 0 : 1)
    );
  }
}

export function documentKey(kind: string, name: string): string {
  return `${kind}\u0000${name}`;
}
