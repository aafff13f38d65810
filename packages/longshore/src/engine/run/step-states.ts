// The steps of a run as a decision sees them: the loaded rows, with the changes of the decision so far. Rows are written only after the
// decision, so later parts of the decision must read from here.

import type { Json } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import type { TaskRow } from "../board/task.ts";
import type { Frontier } from "./decide.ts";
import { LazyMap } from "./lazy-map.ts";
import { type RecordHead, RecordsView, recordHeads } from "./records-view.ts";

const none: ReadonlyMap<number, TaskRow> = new Map();

export class StepStates {
  readonly #frontier: Pick<Frontier, "output" | "record" | "records">;
  /** Records that this decision has created. */
  readonly #fresh = new LazyMap<number, TaskRow>();
  /** The ends of steps in this decision; their rows still have the state before. */
  readonly #ends = new LazyMap<number, Partial<TaskRow>>();
  readonly #forgotten = new LazyMap<number, true>();

  constructor(frontier: Pick<Frontier, "output" | "record" | "records">) {
    this.#frontier = frontier;
  }

  add(node: number, record: TaskRow): void {
    this.#fresh.set(node, record);
  }

  end(node: number, fields: Partial<TaskRow>): void {
    this.#ends.set(node, { ...this.#ends.get(node), ...fields });
  }

  forget(node: number): void {
    this.#forgotten.set(node, true);
  }

  /** During `work`, reads of the step return this record. */
  during<Result>(node: number, record: TaskRow, work: () => Result): Result {
    const before = this.#fresh.get(node);
    this.#fresh.set(node, record);
    const result = work();
    if (before === undefined) this.#fresh.delete(node);
    else this.#fresh.set(node, before);
    return result;
  }

  /** Undefined when the output has not been loaded, null when there is none. */
  output(node: number): Json | undefined {
    const given = this.#ends.get(node)?.output;
    if (given !== undefined) return given === null ? null : (parseExact(given) as Json);
    const record = this.#fresh.get(node);
    if (record !== undefined) return record.output === null ? null : (parseExact(record.output) as Json);
    // The row's state is from an earlier life of the run.
    return this.#forgotten.has(node) ? null : this.#frontier.output(node);
  }

  /** Undefined when the record has not been loaded, null when the step has not started in this life of the run. */
  record(node: number): TaskRow | null | undefined {
    const fresh = this.#fresh.get(node);
    if (fresh === undefined && this.#forgotten.has(node)) return null;
    const record = fresh ?? this.#frontier.record(node);
    return record?.state === "forgotten" ? null : record && this.#asItEnded(node, record);
  }

  /** A record is completed with its texts when it is read, because most readers read a few of thousands. */
  records(): ReadonlyMap<number, TaskRow> | undefined {
    const loaded = this.#frontier.records();
    if (loaded === undefined) return undefined;
    const living = new Map<number, RecordHead>();
    for (const [node, record] of recordHeads(loaded)) {
      if (!this.#forgotten.has(node) && record.state !== "forgotten") living.set(node, record);
    }
    for (const [node, record] of this.#fresh.entries()) living.set(node, record);
    const whole = ({ node }: RecordHead) => this.#asItEnded(node, this.#fresh.get(node) ?? (loaded.get(node) as TaskRow));
    return new RecordsView(living, none, whole);
  }

  #asItEnded(node: number, record: TaskRow): TaskRow {
    const end = this.#ends.get(node);
    return end === undefined ? record : { ...record, ...end };
  }
}
