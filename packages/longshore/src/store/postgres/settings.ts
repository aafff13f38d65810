// Settings of PostgreSQL that decide whether committed work survives.

import type { PgClient } from "./package.ts";

export interface Settings {
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
}

export async function readSettings(client: PgClient): Promise<Settings> {
  const { rows } = await client.query(
    "SELECT current_setting('synchronous_commit') AS sync, current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages",
  );
  const [row] = rows;
  return { synchronousCommit: String(row?.sync), fsync: String(row?.fsync), fullPageWrites: String(row?.pages) };
}

/** The values of `synchronous_commit` with which a commit waits for the disk, and for the synchronous standby if there is one. */
const waiting = ["on", "remote_apply"];

/** A sentence for each setting with which acknowledged work may be lost. */
export function weaknessesOf({ synchronousCommit, fsync, fullPageWrites }: Settings): string[] {
  return [
    ...(waiting.includes(synchronousCommit)
      ? []
      : [
          `synchronous_commit is ${synchronousCommit}: acknowledged work may be lost when a machine fails. Set it to on for this role or database.`,
        ]),
    ...(fsync === "on" ? [] : ["fsync is off: a power cut may destroy all data. Set it to on."]),
    ...(fullPageWrites === "on" ? [] : ["full_page_writes is off: a power cut may damage pages. Set it to on."]),
  ];
}
