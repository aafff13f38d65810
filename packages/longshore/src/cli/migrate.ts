// `longshore migrate`: moves the data of a stopped server from a folder to PostgreSQL, or back.

import { Command } from "commander";
import { counted } from "../core/text.ts";
import type { Migrated, MoveProgress } from "../server/migrate.ts";
import { warn } from "./failure.ts";
import { typedPassword, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";

interface MigrateFlags {
  from: string;
  to: string;
  json?: boolean;
}

const notes = `Stop the server first: while a server uses the source or the target, the command is refused. The target must be empty. Every row is
read again in the target and compared. Afterwards the source keeps its data, is marked as moved, and no server starts on it.
When the command is interrupted, the target stays incomplete and is not served: run the same command again.`;

export function migrateCommand(): Command {
  const command = new Command("migrate").description("move the data of a stopped server between a folder and PostgreSQL");
  withJson(command)
    .requiredOption("--from <place>", "the data folder, or the address of PostgreSQL, where the data are")
    .requiredOption("--to <place>", "the target, PostgreSQL or a folder, without data")
    .hook("preAction", (_command, action) => warnOfPasswords(action.opts<MigrateFlags>()))
    .action(migrate);
  return withExamples(
    command,
    [
      ["longshore migrate --from .longshore --to postgres://longshore@db/longshore", "from a folder to PostgreSQL"],
      ["longshore migrate --from postgres://longshore@db/longshore --to ./data", "and back"],
    ],
    notes,
  );
}

async function migrate({ from, to, json = false }: MigrateFlags): Promise<void> {
  const { migrateData } = await import("../server/migrate.ts");
  const migrated = await migrateData({ from, to, progress: progressPrinter(), warn: (message) => warn(message, json) });
  if (json) printJson(migrated);
  else process.stdout.write(`${asText(migrated).join("\n")}\n`);
}

function asText({ from, to, tables, rows, blobs, missingBlobs }: Migrated): string[] {
  const missing = missingBlobs === 0 ? "" : ` ${counted(missingBlobs, "blob")} had no content.`;
  return [
    `Moved ${counted(rows, "row")} of ${counted(Object.keys(tables).length, "table")} and ${counted(blobs, "blob")} to ${to}.${missing}`,
    `Every row was read again there and is the same. Start the server there; ${from} is marked as moved, and no server starts on it.`,
  ];
}

async function warnOfPasswords(flags: MigrateFlags): Promise<void> {
  const { describeStore, isStoreAddress } = await import("../server/external-store.ts");
  for (const name of ["from", "to"] as const)
    if (isStoreAddress(flags[name]) && describeStore(flags[name]).hasPassword)
      warn(`${typedPassword(`--${name}`)} Give it in PGPASSWORD instead.`, flags.json ?? false);
}

/** Prints a line on standard error for each tenth. */
function progressPrinter(): (news: MoveProgress) => void {
  const tenths = new Map<string, number>();
  return ({ what, done, total }) => {
    const tenth = Math.min(10, Math.floor((10 * done) / Math.max(1, total)));
    if (tenth <= (tenths.get(what) ?? 0)) return;
    tenths.set(what, tenth);
    process.stderr.write(`${what}: ${tenth * 10} %\n`);
  };
}
