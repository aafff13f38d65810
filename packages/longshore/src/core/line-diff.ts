// The difference between two texts, line by line, with some unchanged lines around it.
//
// Myers' algorithm: it looks for the shortest list of changes. Its work grows with the number of changes, not with the length of the texts.

import type { Sliced } from "./slices/slice-work.ts";

export interface DiffLine {
  /** `skipped`: lines that are the same in both texts and are left out; `text` is empty. */
  readonly op: "same" | "added" | "removed" | "skipped";
  readonly text: string;
  /** How many lines it stands for: 1, except for `skipped`. */
  readonly count: number;
}

/** Lines around a change. */
const contextLines = 3;
/** With more changes than this, texts have little in common: the middle is shown as replaced. Its search takes some hundred thousand steps. */
const changesMax = 600;

type Op = "same" | "added" | "removed";

export function* diffLines(before: readonly string[], after: readonly string[]): Sliced<DiffLine[]> {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before[before.length - 1 - tail] === after[after.length - 1 - tail])
    tail++;
  yield;
  const [old, young] = [before.slice(head, before.length - tail), after.slice(head, after.length - tail)];
  const ops = (yield* shortest(old, young)) ?? [...old.map((): Op => "removed"), ...young.map((): Op => "added")];
  const lines: DiffLine[] = before.slice(0, head).map((text) => ({ op: "same", text, count: 1 }));
  let [x, y] = [0, 0];
  for (const op of ops) {
    const text = (op === "added" ? young[y] : old[x]) as string;
    lines.push({ op, text, count: 1 });
    if (op !== "added") x++;
    if (op !== "removed") y++;
  }
  for (const text of before.slice(before.length - tail)) lines.push({ op: "same", text, count: 1 });
  yield;
  return shortened(lines);
}

/** Undefined when there are too many changes. */
function* shortest(old: readonly string[], young: readonly string[]): Sliced<Op[] | undefined> {
  const most = Math.min(changesMax, old.length + young.length);
  /** The furthest place in `old` on each diagonal, after each number of changes. */
  const trace: Int32Array[] = [];
  let reached = new Int32Array(2 * most + 3);
  const middle = most + 1;
  for (let changes = 0; changes <= most; changes++) {
    trace.push(reached.slice());
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      let x = isDown(reached, middle + diagonal, diagonal, changes)
        ? at(reached, middle + diagonal + 1)
        : at(reached, middle + diagonal - 1) + 1;
      while (x < old.length && x - diagonal < young.length && old[x] === young[x - diagonal]) x++;
      reached[middle + diagonal] = x;
      if (x >= old.length && x - diagonal >= young.length) return wayBack(trace, middle, old.length, young.length);
    }
    reached = reached.slice();
    yield;
  }
  return undefined;
}

const at = (list: Int32Array, index: number): number => list[index] as number;

/** Whether the best way to this diagonal adds a line. */
function isDown(reached: Int32Array, index: number, diagonal: number, changes: number): boolean {
  return diagonal === -changes || (diagonal !== changes && at(reached, index - 1) < at(reached, index + 1));
}

function wayBack(trace: readonly Int32Array[], middle: number, endX: number, endY: number): Op[] {
  const ops: Op[] = [];
  let [x, y] = [endX, endY];
  for (let changes = trace.length - 1; changes > 0; changes--) {
    const reached = trace[changes] as Int32Array;
    const diagonal = x - y;
    const down = isDown(reached, middle + diagonal, diagonal, changes);
    const fromX = at(reached, middle + diagonal + (down ? 1 : -1));
    const beginsX = down ? fromX : fromX + 1;
    for (; x > beginsX; x--, y--) ops.push("same");
    ops.push(down ? "added" : "removed");
    if (down) y--;
    else x--;
  }
  for (; x > 0; x--) ops.push("same");
  return ops.reverse();
}

function shortened(lines: readonly DiffLine[]): DiffLine[] {
  const isNear = new Uint8Array(lines.length);
  lines.forEach(({ op }, place) => {
    if (op !== "same") isNear.fill(1, Math.max(0, place - contextLines), place + contextLines + 1);
  });
  const kept: DiffLine[] = [];
  for (const [place, line] of lines.entries()) {
    const last = kept.at(-1);
    if (isNear[place] === 1) kept.push(line);
    else if (last?.op === "skipped") kept[kept.length - 1] = { ...last, count: last.count + 1 };
    else kept.push({ op: "skipped", text: "", count: 1 });
  }
  return kept;
}
