// Moves the data of a stopped server between a folder and PostgreSQL, for the command line.

import { resolve } from "node:path";
import { LongshoreError } from "../core/errors.ts";
import { type Moved, type MoveProgress, move } from "../store/move.ts";
import type { Side } from "../store/move-side.ts";
import { isAddress } from "../store/postgres/address.ts";
import { openPostgresSide } from "../store/postgres/move-side.ts";
import { openSourceFolder, openTargetFolder } from "../store/sqlite/move-side.ts";

export type { MoveProgress } from "../store/move.ts";

export interface Migration {
  /** A folder, or the address of PostgreSQL: one of each. */
  readonly from: string;
  readonly to: string;
  readonly progress: (news: MoveProgress) => void;
  /** Receives what an operator should know about a folder. */
  readonly warn: (message: string) => void;
}

export interface Migrated extends Moved {
  /** Without a password. */
  readonly from: string;
  readonly to: string;
}

export async function migrateData({ from, to, progress, warn }: Migration): Promise<Migrated> {
  if (isAddress(from) === isAddress(to))
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `Data are moved between a folder and PostgreSQL: --from and --to name one of each, such as --from ./data --to postgres://user@host/database.`,
    );
  const source = isAddress(from) ? await openPostgresSide(from) : await openSourceFolder(resolve(from), warn);
  let target: Side | undefined;
  try {
    target = isAddress(to) ? await openPostgresSide(to) : await openTargetFolder(resolve(to), source.place, warn);
    return { from: source.place, to: target.place, ...(await move(source, target, progress)) };
  } finally {
    await target?.close();
    await source.close();
  }
}
