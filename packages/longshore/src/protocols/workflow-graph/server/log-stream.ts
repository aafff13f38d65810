// The live log of one job as server-sent events: README.md, "Log stream".
//
//   event: log, id: <position>    one stored chunk; replay first, then live, in one sequence without gap
//   event: lagged                 the reader is slower than the job: nothing is lost, but it is behind
//   event: end                    the job is over and everything has been sent; the stream closes
//
// Only `log` frames carry an id, so that a client never resumes from a control frame.

import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { FollowOptions, LogEvent } from "../../../engine/log/log.ts";
import type { LogSource, StoredChunk } from "../../../engine/log/store.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import type { EventSink } from "../../../net/http/http.ts";
import type { LogChunk } from "../wire/shapes.ts";
import { isRecorded } from "./render.ts";

export interface LogStreamDeps {
  logs: {
    follow(source: LogSource, options: FollowOptions): AsyncIterable<LogEvent>;
    wake(source: LogSource): void;
    readonly following: number;
  };
  board: { task(taskId: string): Promise<TaskRow | undefined> };
  runs: { run(runId: string): Promise<Run | undefined> };
  /** Called for tasks and runs that a commit changed. */
  listen(listener: { task?(task: TaskRow): void; run?(run: Run): void }): () => void;
}

export interface StreamedJob {
  taskId: string;
  runId: string;
  chunk(stored: StoredChunk): LogChunk;
  /** From `Last-Event-ID`. */
  after: number;
}

export class LogStreams {
  readonly #deps: LogStreamDeps;
  /** Followed jobs by run: the end of a run also ends jobs that were never recorded. */
  readonly #followed = new Map<string, Set<StreamedJob>>();
  /** Readers of workflows that have not run yet. */
  readonly #expecting = new Map<string, Set<() => void>>();

  constructor(deps: LogStreamDeps) {
    this.#deps = deps;
    deps.listen({
      task: (task) => {
        if (deps.logs.following > 0 && !isOpen(task.state)) deps.logs.wake({ taskId: task.id });
      },
      run: (run) => {
        for (const resume of this.#expecting.get(run.workflow) ?? []) resume();
        if (!isRunOpen(run.state)) for (const { taskId } of this.#followed.get(run.id) ?? []) deps.logs.wake({ taskId });
      },
    });
  }

  /** Runs until the job has ended or the reader has disconnected. Never rejects: a reader whose store failed gets the end of its stream. */
  async stream(job: StreamedJob, sink: EventSink): Promise<void> {
    const leave = enter(this.#followed, job.runId, job);
    try {
      const options = { after: job.after, signal: sink.gone, ended: () => this.#ended(job), reader: sink };
      for await (const event of this.#deps.logs.follow({ taskId: job.taskId }, options)) {
        if (!(await send(sink, frameOf(job, event)))) return;
      }
      if (!sink.gone.aborted) await send(sink, { event: "end", data: "{}" });
    } catch {
      // The store cannot be read now. The client gets the end without an `end` frame and resumes from its last id.
    } finally {
      leave();
      sink.end();
    }
  }

  /** Resolves when `look` finds a run of the workflow, now or later; undefined when the reader has disconnected. */
  async firstRun<T>(workflow: string, look: () => Promise<T | undefined>, gone: AbortSignal): Promise<T | undefined> {
    let news = () => {};
    const resume = () => news();
    const leave = enter(this.#expecting, workflow, resume);
    gone.addEventListener("abort", resume, { once: true });
    try {
      for (;;) {
        const started = new Promise<void>((resolve) => {
          news = resolve;
        });
        const found = await look();
        if (found !== undefined || gone.aborted) return found;
        await started;
      }
    } finally {
      leave();
    }
  }

  /** A job that was never recorded has ended when its run has. */
  async #ended(job: StreamedJob): Promise<boolean> {
    const task = await this.#deps.board.task(job.taskId);
    if (isRecorded(task)) return !isOpen(task.state);
    const run = await this.#deps.runs.run(job.runId);
    return run === undefined || !isRunOpen(run.state);
  }
}

/** Adds to a set of a map; the returned function removes the value, and the set when it is empty. */
function enter<T>(map: Map<string, Set<T>>, key: string, value: T): () => void {
  const values = map.get(key) ?? new Set<T>();
  map.set(key, values.add(value));
  return () => {
    values.delete(value);
    if (values.size === 0 && map.get(key) === values) map.delete(key);
  };
}

function frameOf(job: StreamedJob, event: LogEvent): Parameters<EventSink["send"]>[0] {
  if (event.kind === "lagged") return { event: "lagged", data: JSON.stringify({ behind: event.behind }) };
  return { event: "log", id: String(event.chunk.position), data: JSON.stringify(job.chunk(event.chunk)) };
}

/** Waits for a slow reader; returns false when it has disconnected. */
async function send(sink: EventSink, frame: Parameters<EventSink["send"]>[0]): Promise<boolean> {
  while (!sink.gone.aborted) {
    if (sink.send(frame)) return true;
    await sink.drained();
  }
  return false;
}
