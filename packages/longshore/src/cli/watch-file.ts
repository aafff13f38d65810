// Notices that a worker's file, or a file beside or below it, has changed.

import { type Dirent, type FSWatcher, readdirSync, watch } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** An editor writes a file in several steps, and a checkout writes many files: one change is what is quiet for this long. */
const quietMs = 150;
/** Folders watched. A worker beside a huge tree is watched in part, which its own folder always belongs to. */
const foldersMax = 500;
const ignored = /^(node_modules|\..*)$/;
/** Not data: a worker that writes a file beside its own would restart itself. */
const sources = /\.[cm]?[jt]sx?$/;

/** Calls `changed` after each change of a source file in the folder of `file` and the folders below. Ends with what is returned. */
export function watchFile(file: string, changed: (path: string) => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const noticed = (path: string) => {
    clearTimeout(timer);
    timer = setTimeout(() => changed(path), quietMs);
  };
  // Folders rather than files: editors replace a file, and a watch of the old one would notice nothing more.
  const root = dirname(resolve(file));
  const watchers = [watchFolder(root, noticed), ...foldersBelow(root).flatMap((folder) => watchIfAllowed(folder, noticed))];
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}

function watchFolder(folder: string, noticed: (path: string) => void): FSWatcher {
  const watcher = watch(folder, (_, name) => {
    if (name === null || (sources.test(name) && !ignored.test(name))) noticed(name === null ? folder : join(folder, name));
  });
  // A folder that is deleted meanwhile needs no watching.
  watcher.on("error", () => watcher.close());
  return watcher;
}

function watchIfAllowed(folder: string, noticed: (path: string) => void): FSWatcher[] {
  try {
    return [watchFolder(folder, noticed)];
  } catch {
    // A folder of another user, as in /tmp, or removed by now, or one watch more than the system allows: the worker's own is watched.
    return [];
  }
}

function foldersBelow(root: string): string[] {
  const found = [root];
  for (const folder of found) {
    if (found.length >= foldersMax) break;
    for (const entry of entriesOf(folder)) {
      if (entry.isDirectory() && !ignored.test(entry.name)) found.push(join(folder, entry.name));
    }
  }
  return found.slice(1, foldersMax);
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // What may not be looked into has nothing to watch.
    return [];
  }
}
