// The totals of each role's workers, updated when a worker changes. Any program that may write to the bus can name workers and roles. A new
// sum for each lookup would cost the number of all workers times their roles.

export interface Shareholder {
  readonly id: string;
  readonly roles: readonly string[];
  readonly capacity: number;
  readonly announced: boolean;
  readonly suspected: boolean;
  readonly held: { readonly size: number };
}

interface Share {
  readonly roles: readonly string[];
  readonly room: number;
  readonly count: number;
}

interface Figures {
  room: number;
  count: number;
}

export class RoleFigures {
  readonly #shares = new Map<string, Share>();
  readonly #figures = new Map<string, Figures>();
  #mentions = 0;

  /** The number of roles of all workers, with repetitions. */
  get mentions(): number {
    return this.#mentions;
  }

  /** How many tasks of this role could start now. */
  room(role: string): number {
    return this.#figures.get(role)?.room ?? 0;
  }

  /** How many workers of this role have announced themselves. */
  countOf(role: string): number {
    return this.#figures.get(role)?.count ?? 0;
  }

  /** Must be called after each change of a worker. Costs the number of its roles, or nothing when no total changes. */
  update(worker: Shareholder): void {
    const { id, roles, capacity, announced, suspected, held } = worker;
    const share = { roles, room: suspected ? 0 : Math.max(0, capacity - held.size), count: announced ? 1 : 0 };
    const before = this.#shares.get(id);
    if (before?.roles === roles && before.room === share.room && before.count === share.count) return;
    this.remove(id);
    this.#shares.set(id, share);
    this.#add(share, 1);
  }

  remove(id: string): void {
    const before = this.#shares.get(id);
    if (before === undefined) return;
    this.#shares.delete(id);
    this.#add(before, -1);
  }

  #add({ roles, room, count }: Share, sign: 1 | -1): void {
    this.#mentions += sign * roles.length;
    for (const role of roles) {
      const figures = this.#figures.get(role) ?? { room: 0, count: 0 };
      figures.room += sign * room;
      figures.count += sign * count;
      this.#figures.set(role, figures);
    }
  }
}
