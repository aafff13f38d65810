// Everything the benchmarks know of Longshore: its public entry points and its command.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { graph, type Ref, task, work } from "longshore";
import { serve } from "longshore/server";
import { workflowGraph } from "longshore/workflow-graph";
import type { Input, Output, Side } from "./closed-loop.ts";
import { openConnection } from "./http-connection.ts";
import { start } from "./processes.ts";

export interface OpenEmbedded extends Side {
  close(): Promise<void>;
}

type Handler = (input: Input) => Output;

/** A task by itself, for a caller who wants a durable result and no workflow. */
export async function openTasks(folder: string, slots: number, handler: Handler): Promise<OpenEmbedded> {
  const server = await serve({ data: folder, port: null });
  const worker = await work({ tasks: [noop(handler)], on: server, slots });
  return {
    submit: (input) => server.call<Input, Output>("noop", input),
    close: async () => {
      await worker.stop();
      await server.close();
    },
  };
}

/** A run of a workflow with one step, which leaves a finished run behind. */
export async function openRuns(folder: string, slots: number, handler: Handler): Promise<OpenEmbedded> {
  const server = await serve({ data: folder, port: null });
  const only = noop(handler);
  const single = graph<Input, Ref<Output>>("single", (g, input) => g.step(only, input));
  await server.define(single);
  const worker = await work({ tasks: [only], on: server, slots });
  return {
    submit: async (input) => {
      const { id } = await server.start(single.name, input);
      const { state, output, error } = await server.result<Output>(id);
      if (state !== "succeeded" || output === null) throw new Error(`run ${id} ended as ${state}: ${error}`);
      return output;
    },
    close: async () => {
      await worker.stop();
      await server.close();
    },
  };
}

const noop = (handler: Handler) => task("noop", async (input: Input) => handler(input));

export interface Chain {
  /** Runs a chain of `steps` steps to its end. Calls `entered` with the index of each step as its handler begins. */
  run(steps: number, entered: (index: number) => void): Promise<void>;
  close(): Promise<void>;
}

interface Link {
  readonly index: number;
}

export async function openChain(folder: string): Promise<Chain> {
  let onEnter: (index: number) => void = () => undefined;
  const server = await serve({ data: folder, port: null });
  const link = task("link", async (input: Link) => {
    onEnter(input.index);
    return { index: input.index + 1 };
  });
  const worker = await work({ tasks: [link], on: server, slots: 1 });
  return {
    run: async (steps, entered) => {
      onEnter = entered;
      const chain = graph<Link, unknown>(`chain-${steps}`, (g, input) => {
        let last = g.step(link, input);
        for (let index = 1; index < steps; index++) last = g.step(link, last);
        return last;
      });
      await server.define(chain);
      const { id } = await server.start(chain.name, { index: 0 });
      const { state } = await server.result(id);
      if (state !== "succeeded") throw new Error(`the chain of ${steps} steps ended as ${state}`);
    },
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

export async function startServer(folder: string, args: readonly string[] = [], env: Record<string, string> = {}): Promise<OurServer> {
  const running = start(process.execPath, [command, "start", "--port", "0", "--data", folder, "--json", ...args], { env });
  const line = await running.line((text) => text.startsWith("{") && text.includes('"ready"'));
  const { url } = JSON.parse(line) as { url: string };
  return { url, pid: running.pid, stop: running.stop };
}

export interface Remote {
  startAndFinish(sequence: number): Promise<void>;
  close(): Promise<void>;
}

/** A server process, and in this process one worker in its long poll and one connection that starts runs. */
export async function openRemote(folder: string, handler: Handler): Promise<Remote> {
  const server = await startServer(folder);
  let current = -1;
  let onEnter: () => void = () => undefined;
  const noop = task("noop", async () => {
    const output = handler({ sequence: current, padding: "" });
    onEnter();
    return output;
  });
  const worker = await work({ tasks: [noop], on: workflowGraph(server.url), slots: 1 });
  const connection = await openConnection(server.url, "undici");
  const job = { id: "noop", name: "noop", status: "queued", command: "@noop", depends_on: [] };
  const created = await connection.request("POST", "/api/workflows", JSON.stringify({ name: "noop", trigger: "manual", jobs: [job] }));
  const { id } = JSON.parse(created.body) as { id: string };
  const finished = async (): Promise<boolean> => {
    const { body } = await connection.request("GET", `/api/workflows/${id}/status`);
    return (JSON.parse(body) as { jobs: { status: string }[] }).jobs[0]?.status === "success";
  };
  return {
    startAndFinish: async (sequence) => {
      current = sequence;
      const entered = new Promise<void>((resolve) => {
        onEnter = resolve;
      });
      const { status } = await connection.request("POST", `/api/workflows/${id}/run`);
      if (status !== 202) throw new Error(`a run was answered with ${status}`);
      // Reading the state before would add a request of this benchmark to the time that it measures.
      await entered;
      while (!(await finished())) await new Promise((resolve) => setTimeout(resolve, 1));
    },
    close: async () => {
      connection.close();
      await worker.stop();
      await server.stop();
    },
  };
}
