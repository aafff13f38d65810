// Values about the data file itself, by name.

import type { Database } from "./driver.ts";

/** Null when there is no such value, also in a file from a version without properties. */
export function readProperty(db: Database, name: string): string | null {
  const table = db.prepare("SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = 'property'").get();
  if (table === undefined) return null;
  return (db.prepare("SELECT value FROM property WHERE name = ?").get(name)?.value as string | undefined) ?? null;
}

export function writeProperty(db: Database, name: string, value: string): void {
  db.prepare("INSERT INTO property (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value").run(name, value);
}
