// The file of the outbox: JSON lines. Lines are only appended, and a line counts as stored after fsync.
//
//   {"server":"http://localhost:8080/api"}                       the first line
//   {"keep":"<taskId>","atMs":1700000000000,"body":"{...}"}      a result that the server has not accepted
//   {"drop":"<taskId>"}                                          the server has accepted it
//
// Each process has its own files, named by host and process id. Another process takes over the files of a dead process by renaming them:
// only one process can succeed. A last line that a crash has cut off is ignored.

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
/** Used in a file name instead of a process id: the owner has closed the file. */
const noProcess = 0;

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

  /** Deletes the file. For an outbox that has become empty. */
  async remove(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    const path = this.#path;
    if (this.#handle === undefined) return;
    await this.#close();
    await unlink(path);
  }

  /** Replaces the file by one that contains only these. */
  async rewrite(kept: readonly Kept[]): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    const path = this.#path;
    if (this.#handle === undefined) return;
    await this.#close();
    await Promise.all(kept.map((each) => this.keep(each)));
    await unlink(path);
  }

  /** Takes over files of dead processes for the same server. The caller keeps their results again, and then calls `discard` with the paths. */
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
        // Another process has taken the file over, or it cannot be read: this process does not send it.
      }
    }
    return { kept, paths };
  }

  /** Closes the file and keeps it for the next process, or for the next worker in this process. */
  async leave(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (this.#handle === undefined) return;
    await this.#close();
    await rename(this.#path, join(this.#folder, fileName(noProcess)));
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

  /** Lines that arrive during an fsync are written together, before the next one. */
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

/** Deletes files that `adopt` has taken over. */
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

/** The file belongs to no process of this host that is alive. Files of other hosts do not count: their processes cannot be checked from here. */
function isLeft(name: string): boolean {
  const match = /^conductor-([A-Za-z0-9._]+)-(\d+)-[0-9a-f]{8}\.jsonl$/.exec(name);
  if (match === null || match[1] !== hostPart()) return false;
  const pid = Number(match[2]);
  return pid === noProcess || (pid !== process.pid && !isAlive(pid));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
