// One process of a foreign program: its output while it runs, its exit, and a stop that waits for the exit.
import { type ChildProcess, spawn } from "node:child_process";

export interface ChildOptions {
  /** The name of the process in error messages. */
  name: string;
  env?: Record<string, string>;
  cwd?: string;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Everything written so far, both streams in order of arrival. */
  output(): string;
  /** Waits for the first match in the output of the process, past or future. Rejects when the process ends before a match. */
  printed(pattern: RegExp): Promise<RegExpMatchArray>;
  hasEnded(): boolean;
  /** `code 0`, or the name of the signal that ended it. */
  readonly ended: Promise<string>;
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGTERM, and SIGKILL after a while. Also ends the processes that it started. May be called twice. */
  stop(): Promise<string>;
}

/** The time that a peer has to end before it is killed. Our own server is the slowest, and needs much less. */
const STOP_MS_MAX = 10_000;

/** A process reports that it is ready within milliseconds; a busy machine needs longer. */
const PRINT_MS_MAX = 60_000;

export function startChild(command: string, args: readonly string[], options: ChildOptions): Child {
  // A separate process group, so that the processes that it started can be ended with it.
  const process_ = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  return new RunningChild(process_, options.name);
}

class RunningChild implements Child {
  readonly name: string;
  readonly pid: number;
  readonly ended: Promise<string>;
  private readonly process: ChildProcess;
  private readonly listeners = new Set<() => void>();
  private text = "";
  private over = false;

  constructor(child: ChildProcess, name: string) {
    this.process = child;
    this.name = name;
    // No pid means that the program could not be started at all; the error event has the reason.
    this.pid = child.pid ?? 0;
    this.ended = new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => resolve(signal ?? `code ${code}`));
    }).then((how) => {
      this.over = true;
      this.tell();
      return how;
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.text += text;
        this.tell();
      });
    }
  }

  output(): string {
    return this.text;
  }

  printed(pattern: RegExp): Promise<RegExpMatchArray> {
    return new Promise((resolve, reject) => {
      const settle = (done: () => void): void => {
        clearTimeout(timer);
        this.listeners.delete(check);
        done();
      };
      const refuse = (why: string): void =>
        settle(() => reject(new Error(`${this.name} ${why} without printing ${pattern}; it wrote:\n${this.text}`)));
      const check = (): void => {
        const match = pattern.exec(this.text);
        if (match) settle(() => resolve(match));
        else if (this.over) refuse("ended");
      };
      const timer = setTimeout(() => refuse(`went on for ${PRINT_MS_MAX} ms`), PRINT_MS_MAX);
      this.listeners.add(check);
      check();
    });
  }

  hasEnded(): boolean {
    return this.over;
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.over) this.process.kill(signal);
  }

  async stop(): Promise<string> {
    // A process that is stopped (SIGSTOP) receives SIGTERM only after SIGCONT.
    this.signal("SIGCONT");
    this.signal("SIGTERM");
    const force = setTimeout(() => this.signal("SIGKILL"), STOP_MS_MAX);
    const how = await this.ended;
    clearTimeout(force);
    this.endGroup();
    return how;
  }

  private endGroup(): void {
    // Group 0 would be our own.
    if (this.pid === 0) return;
    try {
      process.kill(-this.pid, "SIGKILL");
    } catch {
      // The group is empty, which is the usual case.
    }
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
