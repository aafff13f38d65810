// A server process with a workflow that no worker takes, for attacks on its data folder: what was acknowledged can be counted.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CliOptions, type ServerProcess, startServer, temporaryFolder } from "./cli.ts";

export interface RunServer extends ServerProcess {
  /** Starts so many runs, one after the other; returns the status of each answer. */
  startRuns(count: number, inputChars?: number): Promise<number[]>;
  /** How many runs it lists, over all pages. */
  countRuns(): Promise<number>;
  /** Cancels every run that it lists on one page. */
  cancelRuns(): Promise<void>;
  health(): Promise<{ status: number; body: { status: string; message?: string } }>;
  /** Ends it gracefully. */
  stop(): Promise<void>;
  /** Ends it as a crash does. */
  crash(): Promise<void>;
}

/** A folder for the data that does not exist yet. */
export function dataFolder(): string {
  return join(temporaryFolder(), "data");
}

export async function startRunServer(data: string, args: readonly string[] = [], options: CliOptions = {}): Promise<RunServer> {
  const workflows = join(temporaryFolder(), "workflows");
  mkdirSync(workflows);
  writeFileSync(join(workflows, "wait.yml"), "name: wait\non: push\njobs:\n  a: { run: echo a }\n");
  const server = await startServer(["--data", data, "--workflows", workflows, ...args], options);
  const api = (path: string, init?: RequestInit) => fetch(`${server.url}${path}`, init);
  return {
    ...server,
    async startRuns(count, inputChars = 500) {
      const statuses: number[] = [];
      for (let at = 0; at < count; at++) {
        const body = JSON.stringify({ workflow: "wait", input: { text: "x".repeat(inputChars) } });
        const answer = await api("/api/longshore/v1/runs", { method: "POST", body, headers: { "content-type": "application/json" } });
        await answer.arrayBuffer();
        statuses.push(answer.status);
      }
      return statuses;
    },
    async countRuns() {
      let count = 0;
      for (let before: string | null = ""; before !== null; ) {
        const answer = await api(`/api/longshore/v1/runs?limit=1000${before === "" ? "" : `&before=${before}`}`);
        const page = (await answer.json()) as { items: unknown[]; next: string | null };
        count += page.items.length;
        before = page.next;
      }
      return count;
    },
    async cancelRuns() {
      const { items } = (await (await api("/api/longshore/v1/runs?limit=1000")).json()) as { items: { id: string }[] };
      for (const { id } of items) await (await api(`/api/longshore/v1/runs/${id}/cancel`, { method: "POST" })).arrayBuffer();
    },
    async health() {
      const answer = await api("/health");
      return { status: answer.status, body: (await answer.json()) as { status: string; message?: string } };
    },
    async stop() {
      server.kill("SIGTERM");
      await server.ended;
    },
    async crash() {
      server.kill("SIGKILL");
      await server.ended;
    },
  };
}
