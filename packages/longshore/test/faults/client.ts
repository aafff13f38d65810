// The client of a fault test: starts and cancels runs, records what was acknowledged, and reads the final states.
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { cancelRun, createWorkflow, type Job, listRuns, readLog, readRun, readTasks, startRun, UnexpectedAnswer } from "./api.ts";
import { openHistory } from "./history.ts";
import { type Connection, connect } from "./http.ts";
import type { FinalState } from "./story.ts";

export interface Client {
  connection: Connection;
  create(name: string, jobs: Job[]): Promise<string>;
  /** Sends a start, with one key, until it is acknowledged. */
  start(workflow: string): Promise<string>;
  /** Sends a start without a key, once. */
  startOnce(workflow: string): Promise<string>;
  cancel(runId: string): Promise<void>;
  /** Resolves when every run and its tasks have ended, or when the time is over. The checker finds out which. */
  untilEnded(runIds: readonly string[], msMax: number): Promise<void>;
  readFinal(runIds: readonly string[]): Promise<FinalState>;
  close(): void;
}

const RETRY_MS = 50;
/** Longer than any restart of the server: a server that is down for this long has failed. */
const PATIENCE_MS = 90_000;
const LOOK_MS = 100;
const CLIENT_SOCKETS = 4;

export function openClient(url: string, historyFile: string, define = createWorkflow, open: typeof connect = connect): Client {
  const connection = open(url, CLIENT_SOCKETS);
  const history = openHistory(historyFile);
  let requests = 0;
  const startOnce = async (workflow: string, key?: string): Promise<string> => {
    const request = requests++;
    history.write({ kind: "run-start-sent", request, workflow });
    try {
      const runId = await startRun(connection, workflow, key);
      history.write({ kind: "run-start-acknowledged", request, workflow, runId });
      return runId;
    } catch (error) {
      history.write({ kind: "run-start-unanswered", request, why: String(error) });
      throw error;
    }
  };
  return {
    connection,
    async create(name, jobs) {
      const workflow = await define(connection, name, jobs);
      history.write({ kind: "workflow-created", workflow, steps: Object.fromEntries(jobs.map((job) => [job.id, job.depends_on])) });
      return workflow;
    },
    start(workflow) {
      const key = randomUUID();
      return untilAnswered(() => startOnce(workflow, key));
    },
    startOnce,
    cancel: (runId) =>
      untilAnswered(async () => {
        history.write({ kind: "cancel-sent", runId });
        try {
          history.write({ kind: "cancel-acknowledged", runId, ...(await cancelRun(connection, runId)) });
        } catch (error) {
          // A run that has ended or is unknown cannot be cancelled, and this response is also valid.
          if (isRefusal(error)) history.write({ kind: "cancel-refused", runId, status: error.status });
          else history.write({ kind: "cancel-unanswered", runId, why: String(error) });
          if (!isRefusal(error)) throw error;
        }
      }),
    async untilEnded(runIds, msMax) {
      const open = new Set(runIds);
      const endsAt = Date.now() + msMax;
      while (open.size > 0 && Date.now() < endsAt) {
        for (const runId of open) {
          const run = await untilAnswered(() => readRun(connection, runId));
          if (run && !run.ended) continue;
          // Waiting does not help for a run that the server does not know. Workers may still hold tasks of a cancelled run.
          const tasks = run ? await untilAnswered(() => readTasks(connection, runId)) : [];
          if (tasks.every((task) => task.ended)) open.delete(runId);
        }
        if (open.size > 0) await pause(LOOK_MS);
      }
    },
    async readFinal(runIds) {
      const lines: string[] = [];
      const final: FinalState = { runs: [], tasks: [], listed: await listRuns(connection), lines };
      for (const runId of runIds) {
        const run = await readRun(connection, runId);
        if (!run) continue;
        final.runs.push(run);
        final.tasks.push(...(await readTasks(connection, runId)));
        lines.push(...(await readLog(connection, runId)));
      }
      return final;
    },
    close() {
      connection.close();
      history.close();
    },
  };
}

/** The server has refused, and a repeated request would not change this. */
function isRefusal(error: unknown): error is UnexpectedAnswer {
  return error instanceof UnexpectedAnswer && error.status < 500;
}

/** Retries while the server is down. After the maximum time, throws the last error. */
async function untilAnswered<T>(request: () => Promise<T>): Promise<T> {
  const endsAt = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (isRefusal(error) || Date.now() > endsAt) throw error;
      await pause(RETRY_MS);
    }
  }
}
