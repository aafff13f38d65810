// graphile-worker as its manual advises for speed: jobs are fetched in batches into a local queue, and those that end together are completed
// together. It keeps no results: the output stays in this process, which is in its favour.
import { Logger, run } from "graphile-worker";
import pg from "pg";
import type { Input, Output, Side } from "./closed-loop.ts";

/** The default of its pool. */
const CONNECTIONS = 10;

export interface OpenPeer extends Side {
  close(): Promise<void>;
}

interface Query {
  readonly text?: string;
  readonly values?: readonly unknown[];
}

export async function openGraphile(url: string, slots: number, handler: (input: Input) => Output): Promise<OpenPeer> {
  const waiting = new Map<number, (output: Output) => void>();
  const outputs = new Map<string, Output>();
  const completed = (id: string): void => {
    const output = outputs.get(id);
    if (output === undefined) return;
    outputs.delete(id);
    waiting.get(output.sequence)?.(output);
    waiting.delete(output.sequence);
  };
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
  pool.on("connect", (client) => {
    client.on("error", () => undefined);
    tellCompleted(client, completed);
  });
  // The caller that uses the connection gets its error as well.
  pool.on("error", () => undefined);
  const runner = await run({
    pgPool: pool,
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
    taskList: {
      noop: (payload, { job }) => {
        outputs.set(String(job.id), handler(payload as Input));
      },
    },
    preset: { worker: { concurrentJobs: slots, completeJobBatchDelay: 0, localQueue: { size: slots } } },
  });
  return {
    submit: (input) =>
      new Promise((resolve, reject) => {
        waiting.set(input.sequence, resolve);
        runner.addJob("noop", input).catch(reject);
      }),
    close: async () => {
      await runner.stop();
      await pool.end();
    },
  };
}

/** Its own events come before the row of a job is gone. So the statement that removes the row shows when a job is done durably. */
function tellCompleted(client: pg.PoolClient, completed: (id: string) => void): void {
  const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
  const told = (...args: unknown[]): Promise<unknown> => {
    const answer = query(...args);
    const { text, values } = (args[0] ?? {}) as Query;
    if (text?.startsWith("delete from") !== true || !text.includes("_private_jobs")) return answer;
    return answer.then((rows) => {
      for (const id of [values?.[0]].flat()) completed(String(id));
      return rows;
    });
  };
  client.query = told as typeof client.query;
}
