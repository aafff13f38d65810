// `longshore demo`, which `npm start` runs: a server, a worker in a separate process, and a sample workflow.

import { fileURLToPath } from "node:url";
import { Command } from "commander";
import type { Run } from "./api.ts";
import { startWorkerChild, type WorkerChild } from "./child.ts";
import { type Client, connect } from "./client.ts";
import { CommandFailure, exitFailed } from "./failure.ts";
import { onOption, withData, withExamples, withPort } from "./options.ts";
import { type Paint, painter } from "./terminal.ts";
import { untilTerminated } from "./termination.ts";

interface DemoFlags {
  port: number;
  data: string;
  once?: boolean;
}

/** How many lines of output are shown when the worker crashed. */
const lastLinesMax = 20;

export function demoCommand(): Command {
  const command = new Command("demo").description("start a server and a worker, and watch a sample workflow");
  withData(withPort(command)).option("--once", "end after the sample; the exit code is 0 only when it succeeded").action(demo);
  return withExamples(command, [
    ["longshore demo", "serves until Ctrl-C"],
    ["longshore demo --once --port 0", "for scripts"],
  ]);
}

async function demo(flags: DemoFlags): Promise<void> {
  const terminated = untilTerminated();
  const { serve } = await import("../server/index.ts");
  const { orderWorkflow } = await import("./sample/workflow.ts");
  const server = await serve({ port: flags.port, data: flags.data });
  const url = server.url ?? "";
  const paint = painter(process.stdout);
  const lines: string[] = [];
  const leaving = new AbortController();
  const worker = startWorkerChild({
    files: [fileURLToPath(new URL("./sample/tasks.js", import.meta.url))],
    url,
    line: (line) => lines.push(line) > lastLinesMax && lines.shift(),
  });
  try {
    process.stdout.write(`${opening(url, flags.data, paint)}\n\n`);
    await server.define(orderWorkflow);
    const runId = await Promise.race([
      showSample(connect({ on: url }), leaving.signal),
      terminated.then(() => undefined),
      died(worker, lines),
    ]);
    if (runId === undefined || flags.once) return;
    process.stdout.write(`\n${closing(url, runId, paint)}\n`);
    await terminated;
    process.stdout.write("\n");
  } finally {
    leaving.abort();
    await worker.stop();
    await server.close();
  }
}

/** Returns the id of the sample's run when it has succeeded. */
async function showSample(client: Client, signal: AbortSignal): Promise<string> {
  const { orderWorkflow, sampleOrder } = await import("./sample/workflow.ts");
  const { showRun } = await import("./live-run.ts");
  const { id } = await client.post<Run>("/runs", { workflow: orderWorkflow.name, input: sampleOrder });
  const { run } = await showRun(client, id, process.stdout, signal);
  if (run.state === "succeeded") return id;
  throw new CommandFailure(`the sample ${run.state}${run.error === null ? "" : `: ${run.error}`}`, exitFailed);
}

/** Never resolves; throws when the worker ends, because the sample cannot continue without it. */
async function died(worker: WorkerChild, lines: readonly string[]): Promise<never> {
  const { code, signal } = await worker.ended;
  throw new CommandFailure(`the sample worker ended (${signal ?? `exit code ${code}`}). Its last output:\n${lines.join("\n")}`, exitFailed);
}

function opening(url: string, data: string, paint: Paint): string {
  return [
    `${paint("bold", "Longshore")} serves on ${paint("cyan", url)}, with its data in ${data}.`,
    paint("dim", "A sample worker runs in a process of its own and takes its tasks over HTTP."),
  ].join("\n");
}

function closing(url: string, runId: string, paint: Paint): string {
  const on = onOption(url);
  const rows: [string, string][] = [
    ["logs of its steps", `npx longshore logs ${runId}${on}`],
    ["the same order again", `npx longshore rerun ${runId} --follow${on}`],
    ["connected workers", `npx longshore workers${on}`],
    ["health of the server", `${url}/health`],
    ["metrics for Prometheus", `${url}/metrics`],
    ["the API", `${url}/api/longshore/v1/openapi.json`],
  ];
  const width = Math.max(...rows.map(([what]) => what.length));
  const lines = rows.map(([what, how]) => `  ${paint("dim", what.padEnd(width))}  ${paint("cyan", how)}`);
  return ["The order has succeeded. Commands for another terminal:", "", ...lines, "", paint("dim", "Serving until Ctrl-C.")].join("\n");
}
