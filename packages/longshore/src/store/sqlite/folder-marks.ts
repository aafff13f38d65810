// Marks of a data folder are files, so that people can see and remove them.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { incompleteName, type Mark, type Marks, movedName, readMark } from "../marks.ts";

export function readFolderMarks(directory: string): Marks {
  const read = (name: string) => {
    const file = join(directory, name);
    return readMark(existsSync(file) ? readFileSync(file, "utf8") : null);
  };
  return { moved: read(movedName), incomplete: read(incompleteName) };
}

/** Null removes it. */
export function writeFolderMark(directory: string, name: keyof Marks, mark: Mark | null): void {
  const file = join(directory, name);
  if (mark === null) rmSync(file, { force: true });
  else {
    const temporary = `${file}.new`;
    const handle = openSync(temporary, "w", 0o600);
    try {
      writeFileSync(handle, `${JSON.stringify(mark)}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(temporary, file);
  }
  syncFolder(directory);
}

function syncFolder(directory: string): void {
  // Windows cannot open a folder; its file system makes names durable by itself.
  if (process.platform === "win32") return;
  const handle = openSync(directory, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** The command that removes the mark of a folder whose data were moved. */
export function undoOf(directory: string): string {
  return `remove the file ${join(directory, movedName)}`;
}
