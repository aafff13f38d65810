// Workers in the server's own process: the same runner and the same board, without a socket. A report also claims the next task, in the same
// transaction.

import { pause } from "../core/clock.ts";
import type { Blobs, StepPart } from "../core/context.ts";
import { LongshoreError, refusal } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import type { Task } from "../core/task.ts";
import type { SpanIds } from "../core/trace.ts";
import { commandsQuestion, journalQuestion } from "../core/turn.ts";
import { agentText } from "../core/worker-agent.ts";
import type { Board } from "../engine/board/board.ts";
import type { Reach } from "../engine/board/lanes.ts";
import { reservedForServer } from "../engine/board/reserved-lanes.ts";
import { type TaskRow as BoardTask, type Hold, isDriver } from "../engine/board/task.ts";
import type { Sign } from "../engine/board/worker-view.ts";
import type { Workers } from "../engine/board/workers.ts";
import type { Logs } from "../engine/log/log.ts";
import type { PartStore } from "../engine/part/store.ts";
import type { JournalReader } from "../engine/run/journal.ts";
import { type Foreseen, foresightOf, type StepHandOut } from "../runner/function/foreseen-turns.ts";
import type { WorkTrace } from "../runner/telemetry.ts";
import type {
  Assignment,
  BeatAnswer,
  Call,
  Capabilities,
  LogEntry,
  Outcome,
  ReportAnswer,
  Transport,
  TransportHost,
} from "../runner/transport.ts";
import { localParts } from "./local-parts.ts";

export interface LocalOptions {
  board: Board;
  workers: Pick<Workers, "seen">;
  logs: Pick<Logs, "append">;
  blobs: Blobs;
  parts: PartStore;
  journal: JournalReader;
  /** The task of a step of a run; undefined when the run has no such step. */
  taskOfStep(runId: string, stepId: string): Promise<string | undefined>;
  /** The span of the attempt that a worker gets with a task. */
  spanOf(task: BoardTask): SpanIds | undefined;
  /** The holder name of this worker's leases. */
  holder: string;
}

/** The worker ends with the server, so a lease must only outlast a stall of this process. */
const termMs = 10_000;
const beatMs = 3_000;
/** An empty wait ends after this time and starts again, which shows that the worker is alive. */
const waitMs = 30_000;
/** The delay after a claim that failed (the store cannot be written, the server is closing). */
const retryMs = 500;

const capabilities: Capabilities = {
  defer: true,
  progress: true,
  streams: true,
  logs: true,
  stacks: true,
  blobs: true,
  cancel: true,
  functions: true,
};

export function localTransport(options: LocalOptions): Transport {
  let sign: Sign & { readonly reach: Reach } = { protocol: "local", reach: { names: [], labels: [] }, everyMs: waitMs };
  const receiving: Promise<void>[] = [];

  /** One loop per slot: all of them can wait at once, so tasks that are queued together are delivered together. */
  const receive = async (around: TransportHost, draining: AbortSignal): Promise<void> => {
    for (let slot = await around.slots.take(); slot !== undefined; slot = await around.slots.take()) {
      const task = await claim(around, draining);
      if (task === undefined) slot.release();
      else if (around.draining.aborted) {
        slot.release();
        await giveBack(task);
      } else void slot.run(assign(task));
    }
  };

  /** Returns a task that this worker will not run. When the store cannot be written now, the lease expires by itself. */
  const giveBack = (task: BoardTask) => options.board.giveBack(holdOf(task)).catch(() => undefined);

  const claim = (around: TransportHost, draining: AbortSignal): Promise<BoardTask | undefined> => {
    const { board, workers, holder } = options;
    workers.seen(holder, sign);
    return board.claim({ reach: sign.reach, holder, termMs, waitMs: Math.min(around.waitMsMax, waitMs), signal: draining }).then(
      ([task]) => {
        around.working("claim");
        return task;
      },
      async (error: unknown) => {
        around.failing("claim", error);
        await pause(around.clock, retryMs, draining);
        return undefined;
      },
    );
  };

  const assign = (task: BoardTask): Assignment => ({
    ids: { runId: task.runId ?? "", stepId: task.step, taskId: task.id, grantId: `${task.id}-${task.grant}` },
    attempt: task.attempt + 1,
    idempotencyKey: task.id,
    hold: { termMs, everyMs: beatMs },
    deferrals: task.deferrals,
    deferred: task.deferrals > 0 ? keptBy(task) : undefined,
    blobs: options.blobs,
    trace: traceOf(options.spanOf(task)),
    resolve: (tasks) => callOf(task, tasks),
    beat: async (): Promise<BeatAnswer> => ({ verdict: (await options.board.extend(holdOf(task))).verdict }),
    log: (entries) => append(options.logs, task, entries),
    progress: async (value) => {
      await options.board.extend(holdOf(task), { output: JSON.stringify(value) });
    },
    emit: (given) => emit(options.parts, holdOf(task), given),
    receive: (stepId) => localParts(options, task, stepId),
    ask: (name, value) => ask(options, task, name, value),
    report: (outcome, { wantNext }) => report(task, outcome, wantNext),
  });

  let foresee: ReturnType<typeof foresightOf>;

  const report = (task: BoardTask, outcome: Outcome, wantNext: boolean): Promise<ReportAnswer> => {
    if (!wantNext || outcome.kind !== "done") return settle(options.board, holdOf(task), outcome).then((verdict) => ({ verdict }));
    if (task.runId === null || foresee === undefined) return complete(task, outcome.output);
    const { output } = outcome;
    return foresee(task.runId, stepOf(task), output).then((foreseen) => complete(task, output, foreseen));
  };

  const complete = (task: BoardTask, output: Json, foreseen?: Foreseen): Promise<ReportAnswer> => {
    const { board, workers, holder } = options;
    workers.seen(holder, sign);
    const claim = { reach: sign.reach, holder, termMs };
    const turn = foreseen === undefined ? undefined : { ...foreseen.turn, report: JSON.stringify(foreseen.turn.report) };
    return board.completeAndClaim(holdOf(task), JSON.stringify(output), { turn }, claim).then(({ verdict, task: next, tookTurn }) => {
      if (tookTurn) foreseen?.accepted();
      return { verdict, next: next === undefined ? undefined : assign(next) };
    });
  };

  return {
    name: "local",
    capabilities,
    async start(around) {
      const tasks = [...around.tasks.values()];
      const kept = tasks.find(({ name }) => options.board.reserved.isForServer(name));
      if (kept !== undefined)
        throw new LongshoreError("LONGSHORE_BAD_CONFIG", reservedForServer(kept.name), { detail: { field: "tasks" } });
      foresee = foresightOf(around.tasks);
      const reach = { names: tasks.map((task) => task.name).sort(), labels: [...new Set(tasks.flatMap((task) => task.labels))].sort() };
      sign = { ...sign, reach, agent: agentText(around.slots.total) };
      // Each loop has its own signal, so that listeners do not accumulate on the shared one.
      const loops = Array.from({ length: around.slots.total }, () => new AbortController());
      around.draining.addEventListener(
        "abort",
        () => {
          for (const loop of loops) loop.abort();
        },
        { once: true },
      );
      for (const loop of loops) receiving.push(receive(around, loop.signal));
    },
    async drain() {
      await Promise.all(receiving);
    },
    async stop() {},
  };
}

/** The requests of a durable function about its own run. */
async function ask({ board, journal }: LocalOptions, task: BoardTask, name: string, value: Json): Promise<Json> {
  if (isDriver(task) && name === journalQuestion) return JSON.parse((await journal.page(task.runId ?? "", Number(value))) ?? "null");
  if (isDriver(task) && name === commandsQuestion) {
    const { verdict, news } = await board.command(holdOf(task), JSON.stringify(value));
    return news === null ? verdict : (JSON.parse(news) as Json);
  }
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `A worker in the process of the server has no call ${JSON.stringify(name)}.`);
}

function stepOf({ step, claimedAt }: BoardTask): StepHandOut {
  return { shown: step, since: claimedAt ?? 0 };
}

function holdOf(task: BoardTask): Hold {
  return { taskId: task.id, grant: task.grant };
}

async function emit(parts: PartStore, hold: Hold, given: readonly StepPart[]): Promise<void> {
  const verdict = await parts.put(
    hold,
    given.map(({ uid, value }) => ({ uid, value: JSON.stringify(value) })),
  );
  if (verdict === "ok" || verdict === "again") return;
  if (verdict === "cancel") throw new LongshoreError("LONGSHORE_CANCELLED", "cancelled");
  throw new LongshoreError("LONGSHORE_LEASE_LOST", `The lease is over: the reply to parts was "${verdict}".`);
}

async function append(logs: LocalOptions["logs"], task: BoardTask, entries: readonly LogEntry[]): Promise<void> {
  const { id: taskId, runId, attempt, grant } = task;
  const chunks = entries.map(({ stream, sequence, text, atMs }) => ({ stream, sequence, data: text, at: atMs }));
  await logs.append({ taskId, runId, attempt, grant, chunks });
}

function settle(board: Board, hold: Hold, outcome: Outcome): Promise<ReportAnswer["verdict"]> {
  if (outcome.kind === "done") return board.complete(hold, JSON.stringify(outcome.output));
  if (outcome.kind === "failed") return board.fail(hold, { error: outcome.error.message, retryable: outcome.retryable });
  // Replaces the last progress value. Otherwise the next call would receive that as its deferred output.
  return board.defer(hold, outcome.delayMs, JSON.stringify(outcome.output ?? null));
}

/** The output that the last deferral stored for this call; undefined without one. */
function keptBy({ output }: BoardTask): Json | undefined {
  return output === null ? undefined : ((JSON.parse(output) as Json) ?? undefined);
}

function callOf(task: BoardTask, tasks: ReadonlyMap<string, Task>): Call {
  const found = tasks.get(task.lane?.name ?? "");
  if (found === undefined)
    throw refusal("LONGSHORE_NO_HANDLER", `No handler is called ${task.lane?.name}; this worker has ${[...tasks.keys()].join(", ")}.`);
  return { task: found, input: JSON.parse(task.input) };
}

/** The same object for all tasks while the server writes no spans. */
function traceOf(parent: SpanIds | undefined): WorkTrace {
  return parent === undefined ? untraced : { parent };
}

const untraced: WorkTrace = {};
