// A place for the server's files that a test can fill and empty again.
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SERVER_PROGRAM } from "./processes.ts";

export interface SmallDisk {
  directory: string;
  /** The command that the server must be started with, when not the usual one. */
  command?: string[];
  fill(serverPid: number): void;
  makeRoom(serverPid: number): void;
  close(): void;
}

export interface DiskWay {
  name: string;
  /** Whether a server that is started on it also finds it full. */
  outlivesServer: boolean;
  /** What this machine lacks for it; undefined when it lacks nothing. */
  missing(): string | undefined;
  open(megabytes?: number): SmallDisk;
}

const TMPFS_MEGABYTES = 8;
const FILLER_BYTES = 64 * 1024;

/** A real file system that really is full. Needs the right to mount. */
export const smallTmpfs: DiskWay = {
  name: "a small tmpfs that is full",
  outlivesServer: true,
  missing() {
    const directory = mkdtempSync(join(tmpdir(), "longshore-mount-"));
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${TMPFS_MEGABYTES}m`, "tmpfs", directory]).status === 0;
    if (mounted) run("umount", directory);
    rmdirSync(directory);
    return mounted ? undefined : "the right to mount a tmpfs (root, or CAP_SYS_ADMIN in a container)";
  },
  open(megabytes = TMPFS_MEGABYTES) {
    const directory = mkdtempSync(join(tmpdir(), "longshore-disk-"));
    run("mount", "-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", directory);
    const filler = join(directory, "filler");
    return {
      directory,
      fill: () => writeUntilFull(filler),
      makeRoom: () => rmSync(filler),
      close() {
        run("umount", directory);
        rmdirSync(directory);
      },
    };
  },
};

/** The kernel refuses the server's own writes beyond a size, which it sees as a failed write. Needs no rights. */
const fileSizeLimit: DiskWay = {
  name: "a limit on the size of files",
  outlivesServer: false,
  missing: () => (spawnSync("prlimit", ["--version"]).status === 0 ? undefined : "the command prlimit (Debian package util-linux)"),
  open() {
    const directory = mkdtempSync(join(tmpdir(), "longshore-disk-"));
    return {
      directory,
      // Unless it is ignored, the signal of a refused write would end the process.
      command: ["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh", process.execPath, SERVER_PROGRAM],
      fill: (pid) => run("prlimit", "--pid", String(pid), "--fsize=4096:unlimited"),
      makeRoom: (pid) => run("prlimit", "--pid", String(pid), "--fsize=unlimited:unlimited"),
      close: () => rmSync(directory, { recursive: true }),
    };
  },
};

export const DISK_WAYS: readonly DiskWay[] = [smallTmpfs, fileSizeLimit];

function writeUntilFull(path: string): void {
  const file = openSync(path, "w");
  // Smaller and smaller pieces, until there is not even one page left.
  for (let bytes = FILLER_BYTES; bytes >= 1; bytes = Math.floor(bytes / 16)) {
    while (canWrite(file, bytes));
  }
  closeSync(file);
}

function canWrite(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) === bytes;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}

function run(program: string, ...parameters: string[]): void {
  const { status, stderr } = spawnSync(program, parameters, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${parameters.join(" ")} failed: ${stderr}`);
}
