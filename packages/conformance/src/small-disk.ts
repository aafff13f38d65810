// A disk that is really full, for tests of servers that must survive this.
import { spawnSync } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Stage } from "./stage.ts";

/** Large enough for the database, and small enough to fill quickly. */
const DISK_BYTES = 16 * 1024 * 1024;

/** A separate disk. This needs a mount namespace, and the suite runs in one. */
export function mountSmallDisk(stage: Stage): string {
  const folder = stage.folder();
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "none", folder], { encoding: "utf8" });
  if (mounted.status !== 0) throw new Error(`cannot mount a small disk: ${mounted.stderr}; run the suite by npm run conformance`);
  stage.onClose(() => spawnSync("umount", ["-l", folder]));
  return folder;
}

/** Writes to a file until the disk is full, in pieces that become smaller. Returns the path of this file; remove it to free the disk. */
export function fillDisk(folder: string): string {
  const path = join(folder, "ballast");
  const file = openSync(path, "w");
  for (let bytes = 1024 * 1024; bytes >= 1; ) {
    try {
      writeSync(file, Buffer.alloc(bytes));
    } catch {
      // The disk is full for a piece of this size. Smaller pieces may still fit.
      bytes = Math.floor(bytes / 2);
    }
  }
  closeSync(file);
  return path;
}
