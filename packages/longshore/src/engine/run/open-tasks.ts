// The open tasks of a run, in slices. The transaction that ends a run cancels some of them. Messages of the run to itself cancel the
// others, each in a transaction of its own. Until a task is written, readers get it as it will be written (board/unwritten-endings.ts).

import type { LocalBoard } from "../board/local-board.ts";
import { type RowStore, type TableRows, together } from "../rows.ts";
import { scanOpen } from "../tables/reader-tables.ts";
import { taskIdTable } from "../tables/task.ts";
import type { Tx } from "../tx.ts";
import { type Message, type Step, taskIdOf } from "./run.ts";

/** How many tasks one transaction changes, at up to 80 us each. */
const sliceTasksMax = 100;
/** How many characters of inputs and outputs one transaction reads with these tasks. This takes some milliseconds. */
const sliceCharsMax = 2_000_000;

export interface OpenTasksDeps {
  store: RowStore;
  board: LocalBoard;
  leave: (tx: Tx, message: Message) => void;
  /** Replaces the limit in tests. */
  sliceTasks?: number;
}

export class OpenTasks {
  readonly #options: OpenTasksDeps;
  readonly #rows: TableRows<string>;

  constructor(options: OpenTasksDeps) {
    this.#options = options;
    this.#rows = options.store.table(taskIdTable);
  }

  /** The run ends. `closing` is the task whose end caused it; the board itself ends that task. */
  end(tx: Tx, runId: string, endedAt: number, closing: string | null): void {
    const { board, leave } = this.#options;
    const cancel = (id: string) => (id === closing ? 0 : board.ofRuns.cancelOne(tx, id, endedAt));
    // Tasks that this batch has posted are not stored yet.
    for (const task of board.tasks.pending(tx)) if (task.runId === runId) cancel(task.id);
    const after = this.#slice(tx, runId, beginOf(runId), cancel);
    if (after === null) return;
    leave(tx, { kind: "end-tasks", runId, endedAt, after });
    board.unwritten.ended.add(tx, runId, { endedAt });
  }

  /** The next slice. */
  goOn(tx: Tx, message: Message & { kind: "end-tasks" }): void {
    const { board, leave } = this.#options;
    const { runId, endedAt } = message;
    const after = this.#slice(tx, runId, message.after, (id) => board.ofRuns.cancelOne(tx, id, endedAt));
    if (after === null) board.unwritten.ended.remove(tx, runId);
    else leave(tx, { ...message, after });
  }

  /** Another life of the run starts: the records of these steps become void. A `Step` contains the number of the step's last attempt. */
  forget(tx: Tx, runId: string, at: number, steps: readonly Step[]): void {
    const left = this.#forgetSome(tx, runId, at, steps);
    if (left.length > 0) this.#options.board.unwritten.forgotten.add(tx, runId, { at, attempts: new Map(left) });
  }

  /** The next slice. */
  forgetMore(tx: Tx, { runId, at, steps }: Message & { kind: "forget-tasks" }): void {
    if (this.#forgetSome(tx, runId, at, steps).length === 0) this.#options.board.unwritten.forgotten.remove(tx, runId);
  }

  /** Returns the remaining steps, for which it has left a message. */
  #forgetSome(tx: Tx, runId: string, at: number, steps: readonly Step[]): readonly Step[] {
    const { board, leave, sliceTasks = sliceTasksMax } = this.#options;
    let [chars, done] = [0, 0];
    const forgetSlice = () => {
      for (; done < steps.length && done < sliceTasks && chars <= sliceCharsMax; done++) {
        const [node, attempt] = steps[done] as Step;
        chars += board.ofRuns.forget(tx, taskIdOf(runId, node), at, attempt);
      }
    };
    const ids = () => steps.slice(0, sliceTasks).map(([node]) => taskIdOf(runId, node));
    together(forgetSlice, () => this.#reads(tx, ids()));
    const left = steps.slice(done);
    if (left.length > 0) leave(tx, { kind: "forget-tasks", runId, at, steps: left });
    return left;
  }

  /** Ends the delays of some tasks: the first ones, or those behind `after`. Returns the `after` of the next call; null at the end. */
  hasten(tx: Tx, runId: string, after: string = beginOf(runId)): string | null {
    const { board } = this.#options;
    return this.#slice(tx, runId, after, (id) => board.ofRuns.hasten(tx, id));
  }

  #reads(tx: Tx, ids: readonly string[]): (() => unknown)[] {
    const { tasks } = this.#options.board;
    return ids.map((id) => () => tasks.get(tx, id));
  }

  /** `change` returns the number of characters in the row. The result is the id behind which the next slice starts; null at the end. */
  #slice(tx: Tx, runId: string, after: string, change: (id: string) => number): string | null {
    const { sliceTasks = sliceTasksMax } = this.#options;
    const ids = [...scanOpen(tx, this.#rows, { above: [after], below: [`${runId}/`], limit: sliceTasks }, (id) => id)];
    return together(
      () => {
        let chars = 0;
        for (const id of ids) {
          chars += change(id);
          if (chars > sliceCharsMax) return id;
        }
        return ids.length < sliceTasks ? null : (ids.at(-1) as string);
      },
      () => this.#reads(tx, ids),
    );
  }
}

/** '.' and '/' are neighbours: the ids of a run's tasks are between both. */
function beginOf(runId: string): string {
  return `${runId}.`;
}
