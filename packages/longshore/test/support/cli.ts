// The built command in tests: each runs in a separate process, which ends with its test.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const packageFolder = fileURLToPath(new URL("../..", import.meta.url));
export const program = join(packageFolder, "dist/cli/main.js");

/** A loaded machine may take seconds to start a process; one that prints nothing for this long is stuck. */
const printedMsMax = 30_000;

export interface CliOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Also end what it started, such as the command behind `npx`. */
  readonly group?: boolean;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly pid: number;
  /** Everything so far, of both streams. */
  text(): string;
  stdout(): string;
  /** Resolves with the first match in what it prints, from the beginning. Rejects when it ends without. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
}

/** Runs a command to its end. */
export function longshore(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  return startLongshore(args, options).ended;
}

export function startLongshore(args: readonly string[], options: CliOptions = {}): Running {
  return startProgram(process.execPath, [program, ...args], options);
}

export function startProgram(command: string, args: readonly string[], { cwd, env, input, group = false }: CliOptions = {}): Running {
  const child = spawn(command, args, {
    cwd: cwd ?? packageFolder,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ["pipe", "pipe", "pipe"],
    detached: group,
  });
  // A command that ends before it has read everything closes its input. Its output is enough for the test.
  child.stdin.on("error", () => {});
  child.stdin.end(input ?? "");
  return watched(child, (signal) => (group && child.pid !== undefined ? process.kill(-child.pid, signal) : child.kill(signal)));
}

function watched(child: ChildProcess, kill: (signal: NodeJS.Signals) => boolean): Running {
  const texts = { stdout: "", stderr: "", both: "" };
  const looks = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      texts[name] += text;
      texts.both += text;
      for (const look of looks) look();
    });
  }
  const ended = new Promise<Ended>((resolve) => {
    child.once("error", (error) => resolve({ code: null, signal: null, stdout: "", stderr: String(error) }));
    child.once("close", (code, signal) => resolve({ code, signal, stdout: texts.stdout, stderr: texts.stderr }));
  });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) kill("SIGKILL");
    await ended;
  });
  const printed = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`${why} without printing ${pattern}; it printed:\n${texts.both}`));
      const timer = setTimeout(() => fail(`${printedMsMax} ms passed`), printedMsMax);
      const look = () => {
        const match = pattern.exec(texts.both);
        if (match === null) return;
        clearTimeout(timer);
        looks.delete(look);
        resolve(match);
      };
      looks.add(look);
      look();
      void ended.then(({ code, signal }) => {
        clearTimeout(timer);
        look();
        fail(`it ended (${signal ?? code})`);
      });
    });
  return {
    pid: child.pid ?? 0,
    text: () => texts.both,
    stdout: () => texts.stdout,
    printed,
    kill: (signal) => void kill(signal),
    ended,
  };
}

/** A folder in which `import "longshore"` finds this package, as if it had been installed. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-cli-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(packageFolder, join(folder, "node_modules/longshore"), "dir");
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface ServerProcess extends Running {
  readonly url: string;
  readonly port: number;
}

/** `longshore start` on any free port. */
export async function startServer(args: readonly string[] = ["--ephemeral"], options: CliOptions = {}): Promise<ServerProcess> {
  const running = startLongshore(["start", "--port", "0", "--json", ...args], options);
  const [line] = await running.printed(/^\{"ready":true.*\}$/m);
  const { url, port } = JSON.parse(line) as { url: string; port: number };
  return { ...running, url, port };
}
