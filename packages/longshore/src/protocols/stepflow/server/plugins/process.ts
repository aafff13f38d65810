// One process of a plugin. It leads a process group of its own, which is ended as a whole: SIGTERM first, SIGKILL for what is left.

import { type ChildProcess, spawn } from "node:child_process";
import type { Clock } from "../../../../core/clock.ts";
import type { ProcessGroups } from "../../../../core/process-groups.ts";
import type { PluginLog } from "./log.ts";
import { LineCutter, LineLog } from "./output-lines.ts";

export interface ProcessOptions {
  readonly plugin: string;
  /** A file, and what it is given. */
  readonly program: string;
  readonly args: readonly string[];
  /** All of its environment. */
  readonly env: NodeJS.ProcessEnv;
  readonly directory: string;
  readonly clock: Clock;
  readonly log: PluginLog;
  readonly groups: ProcessGroups;
  /** Is shown each line of standard output first; one that it takes is not logged. */
  readonly takes?: (line: string) => boolean;
}

export interface PluginProcess {
  readonly pid: number | undefined;
  /** Resolves when it is over, with what ended it: `exit code 1`, `killed by SIGKILL`. */
  readonly ended: Promise<string>;
  /** The last lines that it wrote. */
  readonly tail: string;
  /** Ends it and waits until it is over. May be called at any time, and more than once. */
  stop(): Promise<void>;
}

/** Between the polite signal and the one that cannot be refused. */
const graceMs = 5_000;
/** After the group is dead: a process that left the group may still hold the pipes open. */
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

/** It has ended when it has exited, even with child processes: those are ended as well, and their hold on the pipes is not waited for. */
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
      // Also called for signals that could not be sent, when it is still running.
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
