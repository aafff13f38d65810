// A disk that receives every write of a process, and shows its content after a crash at this time. A write is durable when its file was
// synced. A name is durable when its folder or the file itself was synced, as on usual Linux file systems.
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { Op } from "./sweep-trace.ts";

/**
 * `kill`: the process is gone, and everything that it wrote is there. `cut`: the power was cut, and only what was synced is there. `late`:
 * the same, but all later writes except the first are there too, because a disk writes in any order. `torn`: only the first half of each
 * later write is there, in whole sectors.
 */
export const CRASHES = ["kill", "cut", "late", "torn"] as const;
export type Crash = (typeof CRASHES)[number];

type Change = { data: Buffer; at: number } | { size: number };

interface File {
  synced: Buffer;
  since: Change[];
}

export class SweepDisk {
  readonly #root: string;
  readonly #names = new Map<string, File>();
  readonly #syncedNames = new Map<string, File>();
  /** A disk that reports syncs that it has not made, for testing the sweep itself. */
  readonly #lies: boolean;

  constructor(root: string, lies = false) {
    this.#root = root;
    this.#lies = lies;
  }

  apply(op: Op): void {
    if (op.kind === "create") this.#create(op.path, op.empties);
    else if (op.kind === "write") {
      const file = this.#file(op.path);
      file.since.push({ data: op.data, at: op.at ?? contentOf(file.synced, file.since).byteLength });
    } else if (op.kind === "truncate") this.#file(op.path).since.push({ size: op.size });
    else if (op.kind === "sync") this.#sync(op.path);
    else if (op.kind === "rename") {
      this.#names.set(op.to, this.#file(op.path));
      this.#names.delete(op.path);
    } else if (op.kind === "remove") this.#names.delete(op.path);
  }

  /** Files by their path below the root. */
  after(crash: Crash): Map<string, Buffer> {
    const files = new Map<string, Buffer>();
    for (const [path, { synced, since }] of crash === "kill" ? this.#names : this.#syncedNames)
      files.set(relative(this.#root, path), contentOf(synced, changesOf(crash, since)));
    return files;
  }

  #create(path: string, empties: boolean): void {
    const file = this.#names.get(path);
    if (file === undefined) this.#names.set(path, { synced: Buffer.alloc(0), since: [] });
    else if (empties) file.since.push({ size: 0 });
  }

  #sync(path: string): void {
    if (this.#lies) return;
    const file = this.#names.get(path);
    if (file !== undefined) {
      file.synced = contentOf(file.synced, file.since);
      file.since = [];
      this.#syncedNames.set(path, file);
      return;
    }
    for (const name of [...this.#syncedNames.keys()]) if (dirname(name) === path && !this.#names.has(name)) this.#syncedNames.delete(name);
    for (const [name, named] of this.#names) if (dirname(name) === path) this.#syncedNames.set(name, named);
  }

  #file(path: string): File {
    const file = this.#names.get(path);
    if (file === undefined) throw new Error(`${path} is written and was never created.`);
    return file;
  }
}

function changesOf(crash: Crash, since: readonly Change[]): readonly Change[] {
  if (crash === "kill") return since;
  if (crash === "cut") return [];
  if (crash === "late") return since.slice(1);
  return since.map((change) => ("data" in change ? { ...change, data: halfOf(change) } : change));
}

/** The size that a disk writes completely or not at all. */
const SECTOR_BYTES = 512;

function halfOf({ data, at }: { data: Buffer; at: number }): Buffer {
  const end = Math.floor((at + data.byteLength / 2) / SECTOR_BYTES) * SECTOR_BYTES;
  return data.subarray(0, Math.max(0, end - at));
}

function contentOf(synced: Buffer, changes: readonly Change[]): Buffer {
  let content = synced;
  for (const change of changes) {
    if ("data" in change && change.data.byteLength === 0) continue;
    const size = "size" in change ? change.size : Math.max(content.byteLength, change.at + change.data.byteLength);
    const next = Buffer.alloc(size);
    content.copy(next, 0, 0, Math.min(size, content.byteLength));
    if ("data" in change) change.data.copy(next, change.at);
    content = next;
  }
  return content;
}

/** Two crashes with the same remaining content are tested once. */
export function digestOf(files: ReadonlyMap<string, Buffer>): string {
  const hash = createHash("sha256");
  for (const [path, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`${path} ${content.byteLength} `).update(content);
  return hash.digest("hex");
}

export function writeFiles(folder: string, files: ReadonlyMap<string, Buffer>): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [path, content] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, path), content, { mode: 0o600 });
  }
}
