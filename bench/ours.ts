// Everything the benchmarks know of Longshore: its public entry points and its command.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { task, work } from "longshore";
import { serve } from "longshore/server";
import type { Input, Output, Side } from "./closed-loop.ts";
import { type Running, start } from "./processes.ts";

export interface OpenEmbedded extends Side {
  close(): Promise<void>;
}

export async function openEmbedded(folder: string, slots: number, handler: (input: Input) => Output): Promise<OpenEmbedded> {
  const server = await serve({ data: folder, port: null });
  const worker = await work({ tasks: [task("noop", async (input: Input) => handler(input))], on: server, slots });
  return {
    submit: (input) => server.call("noop", input) as Promise<Output>,
    close: async () => {
      await worker.stop();
      await server.close();
    },
  };
}

/** The command as the package publishes it, so that what is measured is what a user runs. */
export const command = join(dirname(createRequire(import.meta.url).resolve("longshore/package.json")), "dist", "cli", "main.js");

export interface OurServer {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export async function startServer(folder: string, args: readonly string[] = []): Promise<OurServer> {
  const running: Running = start(process.execPath, [command, "start", "--port", "0", "--data", folder, "--json", ...args]);
  const line = await running.line((text) => text.startsWith("{") && text.includes('"ready"'));
  const { url } = JSON.parse(line) as { url: string };
  return { url, pid: running.pid, stop: running.stop };
}
