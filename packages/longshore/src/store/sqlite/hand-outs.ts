// Hand-outs under keys with a rate, as rows: a window that was full before a restart is full after it, whatever has become of the
// tasks since. Each is written in the commit of its claim, and goes with a later one once its window has passed it by.

import type { LimitKey, Limits } from "../../board/limits.ts";
import type { GroupCommit } from "./commit.ts";
import type { Database } from "./driver.ts";
import { Additions } from "./rows.ts";

export class HandOuts {
  readonly #db: Database;
  readonly #additions: Additions<{ key: string; at: number; until: number }>;

  constructor(db: Database, commit: GroupCommit) {
    this.#db = db;
    const insert = db.prepare("INSERT INTO hand_out (key, at, until) VALUES (?, ?, ?)");
    const removePassed = db.prepare("DELETE FROM hand_out WHERE until <= ?");
    this.#additions = new Additions(commit, ({ key, at, until }) => {
      removePassed.run(at);
      insert.run(key, at, until);
    });
  }

  /** Inside an operation: a task with these limits is handed out. */
  add(limits: readonly LimitKey[], at: number): void {
    for (const { key, rate } of limits) if (rate !== undefined) this.#additions.add({ key, at, until: at + rate.windowMs });
  }

  /** Tells `limits` what their windows still hold. A clock that was set back meanwhile makes no window longer. */
  recover(limits: Limits, now: number): void {
    for (const row of this.#db.prepare("SELECT key, at FROM hand_out WHERE until > ?").iterate(now))
      limits.remember(row.key as string, Math.min(row.at as number, now));
  }
}
