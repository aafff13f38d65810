// `longshore backup`: copies a data folder, also while its server runs.

import { resolve } from "node:path";
import { Command } from "commander";
import type { BackupProgress } from "../server/backup.ts";
import { describeStore } from "../server/external-store.ts";
import { CommandFailure } from "./failure.ts";
import { withData, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { storeOf, withStoreToLookAt } from "./store-option.ts";

interface BackupFlags {
  data: string;
  json?: boolean;
}

const restoring = `To restore, stop the server, replace the data folder with the copy and start the server again.`;

export function backupCommand(): Command {
  const command = new Command("backup").description("copy the data of a server into an empty folder; the server may be running");
  withStoreToLookAt(withJson(withData(command.argument("<folder>", "the target folder; created if it does not exist")))).action(backup);
  return withExamples(
    command,
    [
      ["longshore backup ./backup", "of the data in ./.longshore"],
      ["longshore backup /backup/$(date +%F) --data /var/lib/longshore", "one folder a day"],
    ],
    restoring,
  );
}

async function backup(folder: string, flags: BackupFlags, command: Command): Promise<void> {
  const store = storeOf(command);
  if (store !== undefined) throw useDump(store);
  const { backUp } = await import("../server/backup.ts");
  const target = resolve(folder);
  const { bytes, blobs, missingBlobs } = await backUp(resolve(flags.data), target, progressPrinter());
  const missing = missingBlobs === 0 ? "" : ` ${missingBlobs} blobs were missing.`;
  const text = `Copied ${bytes} bytes of data and ${blobs} blobs to ${target}.${missing}`;
  if (flags.json) printJson({ folder: target, bytes, blobs, missingBlobs });
  else process.stdout.write(`${text}\n`);
}

/** PostgreSQL's own program copies one snapshot of all tables, with the contents of blobs, while a server runs. */
function useDump(store: string): CommandFailure {
  const { plain, schema } = describeStore(store);
  return new CommandFailure(
    `data in PostgreSQL are copied by its own program: pg_dump --format=custom --schema=${schema} --file=longshore.dump "${plain}". ` +
      "pg_restore brings them back, while no server runs.",
  );
}

/** Prints a line on standard error for each 10 %. */
function progressPrinter(): (news: BackupProgress) => void {
  const tenths = { data: 0, blobs: 0 };
  return ({ what, done, total }) => {
    const tenth = Math.min(10, Math.floor((10 * done) / Math.max(1, total)));
    if (tenth <= tenths[what]) return;
    tenths[what] = tenth;
    process.stderr.write(`${what}: ${tenth * 10} %\n`);
  };
}
