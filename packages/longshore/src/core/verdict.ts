// The closed set of replies to a report about a task. Each protocol translates them into its own codes.

/**
 * - `ok`: the report was applied.
 * - `cancel`: the report was noted, but the work is not wanted any more: stop.
 * - `again`: this same report was applied before; nothing changed.
 * - `stale`: the lease is over (it expired, was closed in another way, or there is a newer grant); nothing changed.
 * - `busy`: the lease is current but belongs to another holder; nothing changed.
 * - `gone`: the task does not exist; nothing changed.
 */
export type Verdict = "ok" | "cancel" | "again" | "stale" | "busy" | "gone";

export const verdicts: readonly Verdict[] = ["ok", "cancel", "again", "stale", "busy", "gone"];
