// Runs handlers outside of the runner's own thread. A thread runs one call at a time, so a handler may compute as long as it needs. When no
// thread is free, a new one is created, up to the number of the worker's slots. Threads are kept. A process belongs to one task and runs
// all its calls. A process that crashed is started again for the next call: the first time at once, later after a delay.

import { fileURLToPath } from "node:url";
import { type Clock, pause } from "../../core/clock.ts";
import type { Context } from "../../core/context.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { WorkerEvents } from "../events.ts";
import { Restarts, restartConfig } from "../restarts.ts";
import { startProcess, startThread } from "./carriers.ts";
import { Host } from "./host.ts";

/** A task that runs in a thread or process, and the module that exports it, as a file URL or a path. */
export interface IsolatedTask {
  readonly isolate: "thread" | "process";
  readonly module: string;
}

export interface IsolatesOptions {
  readonly tasks: ReadonlyMap<string, IsolatedTask>;
  readonly clock: Clock;
  /** How long a handler may continue after its signal aborted; then its thread is ended. */
  readonly abortGraceMs: number;
  readonly memoryMbMax?: number;
  readonly crashed: (crash: WorkerEvents["isolateCrashed"]) => void;
  /** Called when the process of a task is started again after a crash. */
  readonly restarted: (restart: WorkerEvents["workerRestarted"]) => void;
}

export class Isolates {
  readonly #options: IsolatesOptions;
  /** The modules of all tasks that run in threads. Each thread loads all of them, so any thread can run any of these tasks. */
  readonly #threadFiles: readonly string[];
  readonly #idle: Host[] = [];
  readonly #processes = new Map<string, Host>();
  /** Tasks whose process crashed and was not started again yet. */
  readonly #crashed = new Set<string>();
  readonly #restarts = new Map<string, Restarts>();
  readonly #all = new Set<Host>();
  #closed = false;

  constructor(options: IsolatesOptions) {
    this.#options = options;
    const inThreads = [...options.tasks.values()].filter(({ isolate }) => isolate === "thread");
    this.#threadFiles = [...new Set(inThreads.map(({ module }) => pathOf(module)))];
  }

  /** Starts a first thread and every process, so that a module that cannot be loaded fails the start. */
  async start(): Promise<void> {
    const expected = new Map<Host, string[]>();
    const first = this.#threadFiles.length === 0 ? undefined : this.#makeThread();
    if (first !== undefined) this.#idle.push(first);
    for (const [task, { isolate }] of this.#options.tasks) {
      const host = isolate === "thread" ? (first as Host) : this.#makeProcess(task);
      expected.set(host, [...(expected.get(host) ?? []), task]);
    }
    await Promise.all([...expected].map(([host, tasks]) => this.#expectTasks(host, tasks)));
  }

  has(task: string): boolean {
    return this.#options.tasks.has(task);
  }

  /** Runs the handler of this task and returns its value. Rejects with the error that it threw, or because its thread or process ended. */
  run(task: string, input: unknown, context: Context): Promise<unknown> {
    return this.#options.tasks.get(task)?.isolate === "process"
      ? this.#runInProcess(task, input, context)
      : this.#runInThread(task, input, context);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#all].map((host) => host.end()));
  }

  async #runInThread(task: string, input: unknown, context: Context): Promise<unknown> {
    const host = this.#idle.pop() ?? this.#makeThread();
    try {
      return await this.#watched(host, task, input, context);
    } finally {
      if (!host.over && !this.#closed) this.#idle.push(host);
    }
  }

  async #runInProcess(task: string, input: unknown, context: Context): Promise<unknown> {
    return this.#watched(await this.#processFor(task, context.signal), task, input, context);
  }

  /** When a handler ignores its signal, its thread is ended. A process continues while other calls run in it. */
  async #watched(host: Host, task: string, input: unknown, context: Context): Promise<unknown> {
    const { clock, abortGraceMs } = this.#options;
    let disarm = () => {};
    const onAbort = () => {
      disarm = clock.at(clock.now() + abortGraceMs, () => {
        if (host.busy <= 1) void host.end();
      });
    };
    context.signal.addEventListener("abort", onAbort, { once: true });
    if (context.signal.aborted) onAbort();
    try {
      return await host.call(task, input, context);
    } finally {
      disarm();
      context.signal.removeEventListener("abort", onAbort);
    }
  }

  #makeThread(): Host {
    return this.#make("thread", this.#threadFiles, (host) => {
      const at = this.#idle.indexOf(host);
      if (at >= 0) this.#idle.splice(at, 1);
    });
  }

  async #processFor(task: string, signal: AbortSignal): Promise<Host> {
    const { clock } = this.#options;
    for (;;) {
      signal.throwIfAborted();
      const known = this.#processes.get(task);
      if (known !== undefined) return known;
      const waitMs = this.#crashed.has(task) ? this.#restartWaitMs(task) : 0;
      if (waitMs === 0) return this.#makeProcess(task);
      await pause(clock, waitMs, signal);
    }
  }

  /** Returns 0 when the process may be started again now; the restart is then counted. */
  #restartWaitMs(task: string): number {
    const { clock, restarted } = this.#options;
    const restarts = this.#restarts.get(task) ?? new Restarts(restartConfig());
    this.#restarts.set(task, restarts);
    const decision = restarts.decide(clock.now());
    if (decision.kind === "wait") return decision.untilMs - clock.now();
    this.#crashed.delete(task);
    restarted({ task, restarts: restarts.count });
    return 0;
  }

  #makeProcess(task: string): Host {
    const { module } = this.#options.tasks.get(task) as IsolatedTask;
    const ended = (_host: Host, crashed: boolean) => {
      this.#processes.delete(task);
      if (crashed) this.#crashed.add(task);
    };
    const host = this.#make("process", [pathOf(module)], ended);
    this.#processes.set(task, host);
    return host;
  }

  #make(isolate: "thread" | "process", files: readonly string[], ended: (host: Host, crashed: boolean) => void): Host {
    const { memoryMbMax, crashed } = this.#options;
    let byItself = false;
    const start = isolate === "thread" ? startThread : startProcess;
    const host = new Host(
      isolate,
      start,
      { files, memoryMbMax },
      {
        crashed: (error, tasks) => {
          byItself = true;
          crashed({ isolate, error, tasks });
        },
        ended: () => {
          this.#all.delete(host);
          ended(host, byItself);
        },
      },
    );
    this.#all.add(host);
    return host;
  }

  async #expectTasks(host: Host, tasks: readonly string[]): Promise<void> {
    const found = await host.ready;
    const missing = tasks.filter((task) => !found.includes(task));
    if (missing.length === 0) return;
    const files = [...new Set(missing.map((task) => this.#options.tasks.get(task)?.module))].join(", ");
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `${files} does not export the task ${missing.map((name) => `"${name}"`).join(", ")}, which is to run in a thread or process of its own.`,
      { detail: { field: "module" } },
    );
  }
}

function pathOf(module: string): string {
  return module.startsWith("file:") ? fileURLToPath(module) : module;
}
