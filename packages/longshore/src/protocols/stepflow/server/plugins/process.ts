// One process of a plugin. It leads its own process group, which is ended as a whole: SIGTERM first, then SIGKILL.

import { type ChildProcess, spawn } from "node:child_process";
import type { Clock } from "../../../../core/clock.ts";
import type { ProcessGroups } from "../../../../core/process-groups.ts";
import type { PluginLog } from "./log.ts";
import { LineCutter, LineLog } from "./output-lines.ts";

export interface ProcessOptions {
  readonly plugin: string;
  /** The file to run, and its arguments. */
  readonly program: string;
  readonly args: readonly string[];
  /** The complete environment. */
  readonly env: NodeJS.ProcessEnv;
  readonly directory: string;
  readonly clock: Clock;
  readonly log: PluginLog;
  readonly groups: ProcessGroups;
  /** Called with each line of standard output. If it returns true, the line is not logged. */
  readonly takes?: (line: string) => boolean;
}

export interface PluginProcess {
  readonly pid: number | undefined;
  /** Resolves when the process has ended, with the cause: `exit code 1`, `killed by SIGKILL`. */
  readonly ended: Promise<string>;
  /** The last lines that it wrote. */
  readonly tail: string;
  /** Ends the process and waits until it has ended. May be called at any time, and more than once. */
  stop(): Promise<void>;
}

/** The time between SIGTERM and SIGKILL. */
const graceMs = 5_000;
/** How long to wait for the pipes after the end of the group: a process that left the group may keep them open. */
const pipesMs = 500;

export function startProcess(options: ProcessOptions): PluginProcess {
  const { program, args, env, directory, clock, groups, plugin, log } = options;
  const child = spawn(program, args, { cwd: directory, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const { pid } = child;
  groups.add(pid);
  const lines = new LineLog(clock, (text) => log.info(text, { plugin, pid }));
  readLines(child.stdout, (line) => {
    if (options.takes?.(line) !== true) lines.line(line);
  });
  readLines(child.stderr, (line) => lines.line(line));
  const ended = endOf(child, clock, groups);
  let stopping: Promise<void> | undefined;
  return {
    pid,
    ended,
    get tail() {
      return lines.tail;
    },
    stop() {
      stopping ??= stop(pid, ended, clock, groups);
      return stopping;
    },
  };
}

async function stop(pid: number | undefined, ended: Promise<string>, clock: Clock, groups: ProcessGroups): Promise<void> {
  groups.kill(pid, "SIGTERM");
  const disarm = clock.at(clock.now() + graceMs, () => groups.kill(pid, "SIGKILL"));
  await ended;
  disarm();
}

/** The process has ended when it has exited. Its child processes are ended too, and their open pipes are not waited for. */
function endOf(child: ChildProcess, clock: Clock, groups: ProcessGroups): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    let disarm = () => {};
    const finish = () => {
      disarm();
      groups.remove(child.pid);
      resolve(said);
    };
    child.once("error", (error) => {
      // Also emitted for signals that could not be sent to a running process.
      if (child.pid !== undefined) return;
      said = `it could not be started: ${error.message}`;
      finish();
    });
    child.once("exit", (code, signal) => {
      said = signal === null ? `exit code ${code}` : `killed by ${signal}`;
      groups.kill(child.pid, "SIGKILL");
      disarm = clock.at(clock.now() + pipesMs, () => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      });
    });
    child.once("close", finish);
  });
}

function readLines(stream: NodeJS.ReadableStream | null, line: (text: string) => void): void {
  const cutter = new LineCutter(line);
  stream?.on("data", (chunk: Buffer) => cutter.write(chunk));
  stream?.on("end", () => cutter.end());
}
