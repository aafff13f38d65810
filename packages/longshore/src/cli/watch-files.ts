// Notices changes of the files of an app, and of all source files in their folders and the folders below.

import { type Dirent, type FSWatcher, readdirSync, watch } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** An editor writes a file in several steps, and a checkout writes many files: a change is over after this much quiet time. */
const quietMs = 150;
/** The limit of watched folders. In a larger tree only a part is watched, which always includes the folders of the files themselves. */
const foldersMax = 500;
const ignored = /^(node_modules|\..*)$/;
/** Only source files: a worker that writes data next to its own file must not restart itself. */
const sources = /\.[cm]?[jt]sx?$/;

/**
 * Calls `changed` after each change of a source file in the folders of `files` and the folders below. The returned function ends the watch.
 */
export function watchFiles(files: readonly string[], changed: (path: string) => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const noticed = (path: string) => {
    clearTimeout(timer);
    timer = setTimeout(() => changed(path), quietMs);
  };
  // Watches folders rather than files: editors replace a file, and a watch of the old file would notice nothing more.
  const roots = [...new Set(files.map((file) => dirname(resolve(file))))];
  const below = foldersBelow(roots).flatMap((folder) => watchIfAllowed(folder, noticed));
  const watchers = [...roots.map((root) => watchFolder(root, noticed)), ...below];
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}

function watchFolder(folder: string, noticed: (path: string) => void): FSWatcher {
  const watcher = watch(folder, (_, name) => {
    if (name === null || (sources.test(name) && !ignored.test(name))) noticed(name === null ? folder : join(folder, name));
  });
  // A folder that was deleted needs no watch.
  watcher.on("error", () => watcher.close());
  return watcher;
}

function watchIfAllowed(folder: string, noticed: (path: string) => void): FSWatcher[] {
  try {
    return [watchFolder(folder, noticed)];
  } catch {
    // The folder belongs to another user, as in /tmp, or was removed, or the system's limit of watches is reached. The folders of the files
    // are still watched.
    return [];
  }
}

/** All folders below the roots, without the roots themselves. */
function foldersBelow(roots: readonly string[]): string[] {
  const found = new Set(roots);
  for (const folder of found) {
    for (const entry of entriesOf(folder)) {
      if (found.size >= foldersMax) break;
      if (entry.isDirectory() && !ignored.test(entry.name)) found.add(join(folder, entry.name));
    }
  }
  return [...found].slice(roots.length);
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // A folder that cannot be read is not watched.
    return [];
  }
}
