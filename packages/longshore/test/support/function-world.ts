// A server with durable functions, and a worker for them over HTTP that reports what a test wants.

import { onTestFinished } from "vitest";
import { functionLane, type JournalPage, type Turn } from "../../src/core/turn.ts";
import { type ServeOptions, serve } from "../../src/server/index.ts";

const jsonType = { "content-type": "application/json" };

export interface HeldTurn {
  readonly id: string;
  readonly lease: string;
  readonly turn: Turn;
}

export async function startFunctions(name = "f", options: Pick<ServeOptions, "quotas"> = {}) {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" }, ...options });
  onTestFinished(() => server.close(0));
  const ask = (method: string, path: string, body?: unknown) =>
    fetch(`${server.url}${path}`, { method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: jsonType }) });
  const api = (method: string, path: string, body?: unknown) => ask(method, `/api/longshore/v1${path}`, body);
  await api("POST", "/definitions", { source: { name, function: true } });
  /** Takes the next turn. */
  const take = async (): Promise<Omit<HeldTurn, "id">> => {
    const labels = [`handler:${functionLane(name)}`, `handler:${functionLane(name, "w")}`];
    const claimed = await (await ask("POST", "/api/jobs/claim", { worker_id: "w", labels, ttl_secs: 60, wait_secs: 20 })).json();
    const { job, lease } = claimed as { job: { command: string }; lease: { lease_id: string } };
    return { lease: lease.lease_id, turn: (JSON.parse(job.command) as { input: Turn }).input };
  };
  return {
    server,
    api,
    take,
    /** A new run whose first turn is held. */
    async begin(input: unknown = null): Promise<HeldTurn> {
      const { id } = (await (await api("POST", "/runs", { workflow: name, input })).json()) as { id: string };
      return { id, ...(await take()) };
    },
    /** Ends the turn; returns the status. */
    report: async (lease: string, report: object) =>
      (await ask("POST", `/api/jobs/${lease}/complete`, { output: { by: "w-1", commands: [], ...report } })).status,
    /** Adds commands in the middle of the turn; returns the status. */
    add: async (lease: string, report: object) =>
      (await ask("POST", `/api/jobs/${lease}/commands`, { by: "w-1", commands: [], ...report })).status,
    /** Takes a step with this name and ends it with this result. */
    finish: async (step: string, output: unknown): Promise<boolean> => {
      const body = { worker_id: "s", labels: [`handler:${step}`], ttl_secs: 60, wait_secs: 0 };
      const claimed = await ask("POST", "/api/jobs/claim", body);
      if (claimed.status !== 200) return false;
      const { lease } = (await claimed.json()) as { lease: { lease_id: string } };
      return (await ask("POST", `/api/jobs/${lease.lease_id}/complete`, { output })).status === 200;
    },
    journal: async (lease: string, after = 0) =>
      (await (await ask("GET", `/api/jobs/${lease}/journal?after=${after}`)).json()) as JournalPage,
    journalStatus: async (lease: string) => (await ask("GET", `/api/jobs/${lease}/journal`)).status,
    run: async (id: string) =>
      (await (await api("GET", `/runs/${id}`)).json()) as { state: string; error: string | null; variables: unknown },
  };
}
