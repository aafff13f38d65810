// Readers that wait for more parts of a task.

export class Watchers {
  readonly #watchers = new Map<string, Set<() => void>>();

  /** True when no reader waits, so there is nothing to notify. */
  get idle(): boolean {
    return this.#watchers.size === 0;
  }

  watch(taskId: string, changed: () => void): () => void {
    // A new function, so that the same callback may watch twice and end each watch separately.
    const watcher = () => changed();
    const others = this.#watchers.get(taskId);
    if (others === undefined) this.#watchers.set(taskId, new Set([watcher]));
    else others.add(watcher);
    return () => {
      const watching = this.#watchers.get(taskId);
      watching?.delete(watcher);
      if (watching?.size === 0) this.#watchers.delete(taskId);
    };
  }

  tell(taskId: string): void {
    for (const watcher of [...(this.#watchers.get(taskId) ?? [])]) watcher();
  }
}
