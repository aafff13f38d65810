// The closed set of answers to a report about a task. Each protocol turns them into its own words.

/**
 * - `ok`: the report was applied.
 * - `cancel`: the report was noted, and the work is no longer wanted; stop.
 * - `again`: this very report was applied before; nothing changed.
 * - `stale`: the hold is over (expired, closed by something else, or superseded by a newer grant); nothing changed.
 * - `busy`: the hold is current but belongs to another holder; nothing changed.
 * - `gone`: no such task is known; nothing changed.
 */
export type Verdict = "ok" | "cancel" | "again" | "stale" | "busy" | "gone";

export const verdicts: readonly Verdict[] = ["ok", "cancel", "again", "stale", "busy", "gone"];
