// The process groups of programs that this process has started. When this process exits, it kills them all.

export class ProcessGroups {
  readonly #leaders = new Set<number>();
  readonly #onExit = () => {
    for (const pid of this.#leaders) this.kill(pid, "SIGKILL");
  };

  add(pid: number | undefined): void {
    if (pid === undefined) return;
    // One listener for all programs: Node warns about more than ten.
    if (this.#leaders.size === 0) process.on("exit", this.#onExit);
    this.#leaders.add(pid);
  }

  remove(pid: number | undefined): void {
    if (pid === undefined || !this.#leaders.delete(pid)) return;
    if (this.#leaders.size === 0) process.off("exit", this.#onExit);
  }

  /** Signals the whole group. Has no effect when the group has ended already. */
  kill(pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // ESRCH: no process is left. EPERM: a member changed its user; the others were signalled.
    }
  }
}
