// The position of a group in a topic. Records are numbered from 1. Each record is in one of four states: not delivered yet (from `next` on),
// delivered to a member, given back, or done. All records up to `position` are done. Later ones that are done are in `done`. Only
// `position` and `done` are stored.

/** A range that includes both ends. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

export class GroupPosition {
  position: number;
  next: number;
  /** Done records after the position: ascending ranges that do not touch each other. */
  done: Range[];
  /** Records that were given back, ascending: they are delivered first. */
  #back: Range[] = [];

  /** The state as stored in the file: records that were delivered or given back when the process ended are delivered again. */
  constructor(position: number, done: readonly Range[]) {
    this.position = position;
    this.done = [...done];
    this.next = position + 1;
    for (const range of done) {
      if (range.first > this.next) this.#back.push({ first: this.next, last: range.first - 1 });
      this.next = range.last + 1;
    }
  }

  /** Delivers up to `max` records with numbers up to `end`: a range without gaps, or null. */
  take(end: number, max: number): Range | null {
    const back = this.#back[0];
    if (back !== undefined) {
      const range = { first: back.first, last: Math.min(back.last, back.first + max - 1) };
      if (range.last === back.last) this.#back.shift();
      else this.#back[0] = { first: range.last + 1, last: back.last };
      return range;
    }
    if (this.next > end || max < 1) return null;
    const range = { first: this.next, last: Math.min(end, this.next + max - 1) };
    this.next = range.last + 1;
    return range;
  }

  giveBack(range: Range): void {
    this.#back = merged([...this.#back, range]);
  }

  /** True when a record up to `end` can be taken. */
  hasMore(end: number): boolean {
    return this.#back.length > 0 || this.next <= end;
  }

  /** The state after `range` is done as well. */
  after(range: Range): Pick<GroupPosition, "position" | "done"> {
    const done = merged([...this.done, range]);
    const [head] = done;
    if (head === undefined || head.first > this.position + 1) return { position: this.position, done };
    return { position: Math.max(this.position, head.last), done: done.slice(1) };
  }

  /** Records before `first` do not exist any more: skips them. */
  skipTo(first: number): void {
    if (this.position >= first - 1) return;
    this.position = first - 1;
    this.next = Math.max(this.next, first);
    this.#back = cut(this.#back, first);
    this.done = cut(this.done, first);
    const [head] = this.done;
    if (head?.first !== first) return;
    this.position = head.last;
    this.done = this.done.slice(1);
  }
}

function cut(ranges: readonly Range[], first: number): Range[] {
  return ranges.filter((range) => range.last >= first).map((range) => ({ first: Math.max(range.first, first), last: range.last }));
}

function merged(ranges: Range[]): Range[] {
  const sorted = ranges.sort((a, b) => a.first - b.first);
  const result: Range[] = [];
  for (const range of sorted) {
    const before = result.at(-1);
    if (before !== undefined && range.first <= before.last + 1) {
      result[result.length - 1] = { first: before.first, last: Math.max(before.last, range.last) };
    } else result.push(range);
  }
  return result;
}
