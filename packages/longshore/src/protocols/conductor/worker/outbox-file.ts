// The file below the outbox: JSON lines, only ever appended to and synced before a line counts as kept.
//
//   {"server":"http://localhost:8080/api"}                       the first line
//   {"keep":"<taskId>","atMs":1700000000000,"body":"{...}"}      a result that was not taken
//   {"drop":"<taskId>"}                                          it was taken after all
//
// Each process has files of its own, named by host and process id; those of a process that is gone are taken over by renaming them,
// which only one can do. A line that a crash has cut off is not read.

import { randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { isObject } from "../../../core/json/json.ts";

export interface Kept {
  readonly taskId: string;
  readonly atMs: number;
  readonly body: string;
}

/** Results are private. */
const fileMode = 0o600;
const folderMode = 0o700;
/** In place of the id of a process: its owner has closed it. */
const nobody = 0;

export class OutboxFile {
  readonly #folder: string;
  readonly #server: string;
  #handle: FileHandle | undefined;
  #path = "";
  #lines: string[] = [];
  #writing: Promise<void> | undefined;

  constructor(folder: string, server: string) {
    this.#folder = folder;
    this.#server = server;
  }

  keep(kept: Kept): Promise<void> {
    return this.#append({ keep: kept.taskId, atMs: kept.atMs, body: kept.body });
  }

  drop(taskId: string): Promise<void> {
    return this.#append({ drop: taskId });
  }

  /** Nothing is kept any more: the file is removed. */
  async remove(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    const path = this.#path;
    if (this.#handle === undefined) return;
    await this.#close();
    await unlink(path);
  }

  /** A new file with these alone takes the old one's place. */
  async rewrite(kept: readonly Kept[]): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    const path = this.#path;
    if (this.#handle === undefined) return;
    await this.#close();
    await Promise.all(kept.map((each) => this.keep(each)));
    await unlink(path);
  }

  /** Takes over what processes that are gone have left, for the same server. The names answered are to be discarded once all is kept again. */
  async adopt(): Promise<{ readonly kept: readonly Kept[]; readonly paths: readonly string[] }> {
    const kept: Kept[] = [];
    const paths: string[] = [];
    for (const name of await this.#namesLeft()) {
      const taken = join(this.#folder, fileName());
      try {
        if (serverOf(await readFile(join(this.#folder, name), "utf8")) !== this.#server) continue;
        await rename(join(this.#folder, name), taken);
        kept.push(...keptIn(await readFile(taken, "utf8")));
        paths.push(taken);
      } catch {
        // Another process was quicker, or it cannot be read: then it is not ours to send.
      }
    }
    return { kept, paths };
  }

  /** Its content is left for the next process, or for the next worker in this one. */
  async leave(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (this.#handle === undefined) return;
    await this.#close();
    await rename(this.#path, join(this.#folder, fileName(nobody)));
  }

  async #close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  async #namesLeft(): Promise<string[]> {
    try {
      return (await readdir(this.#folder)).filter((name) => isLeft(name));
    } catch {
      // No folder: nothing was ever kept.
      return [];
    }
  }

  /** Lines that come while others are being synced go together with the next sync. */
  #append(line: object): Promise<void> {
    this.#lines.push(`${JSON.stringify(line)}\n`);
    const before = this.#writing ?? Promise.resolve();
    const writing = before.catch(() => {}).then(() => this.#flush());
    const settled = writing.finally(() => {
      if (this.#writing === settled) this.#writing = undefined;
    });
    this.#writing = settled;
    // A failure is reported to callers that wait for `writing`; this chain only marks its end.
    settled.catch(() => {});
    return writing;
  }

  async #flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    if (this.#handle === undefined) {
      await mkdir(this.#folder, { recursive: true, mode: folderMode });
      this.#path = join(this.#folder, fileName());
      this.#handle = await open(this.#path, "ax", fileMode);
      this.#lines.unshift(`${JSON.stringify({ server: this.#server })}\n`);
    }
    const lines = this.#lines;
    this.#lines = [];
    await this.#handle.appendFile(lines.join(""));
    await this.#handle.datasync();
  }
}

/** Files of dead processes that were taken over and kept again. */
export async function discard(paths: readonly string[]): Promise<void> {
  for (const path of paths) await unlink(path);
}

function keptIn(content: string): Kept[] {
  const kept = new Map<string, Kept>();
  for (const line of content.split("\n")) {
    const value = parseLine(line);
    if (typeof value?.drop === "string") kept.delete(value.drop);
    if (typeof value?.keep !== "string" || typeof value.body !== "string" || typeof value.atMs !== "number") continue;
    kept.set(value.keep, { taskId: value.keep, atMs: value.atMs, body: value.body });
  }
  return [...kept.values()];
}

function serverOf(content: string): unknown {
  return parseLine(content.slice(0, content.indexOf("\n") + 1))?.server;
}

function parseLine(line: string): { readonly [name: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    // Cut off by a crash, or the empty end of the file.
    return undefined;
  }
}

function fileName(pid: number = process.pid): string {
  return `conductor-${hostPart()}-${pid}-${randomBytes(4).toString("hex")}.jsonl`;
}

function hostPart(): string {
  return hostname().replace(/[^A-Za-z0-9.]/g, "_");
}

/** Left behind by a process of this host that is gone. Another host's processes cannot be looked at from here. */
function isLeft(name: string): boolean {
  const match = /^conductor-([A-Za-z0-9._]+)-(\d+)-[0-9a-f]{8}\.jsonl$/.exec(name);
  if (match === null || match[1] !== hostPart()) return false;
  const pid = Number(match[2]);
  return pid === nobody || (pid !== process.pid && !isAlive(pid));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
