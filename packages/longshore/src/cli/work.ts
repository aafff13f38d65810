// `longshore work`: a worker whose tasks are what the given files export.

import { Command, Option } from "commander";
import type { Duration } from "../duration.ts";
import type { HttpOptions } from "../runner/http.ts";
import type { Task } from "../task.ts";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, parseCount, parseDuration, parseList, parsePort, withConnection, withExamples } from "./options.ts";
import { type WorkerProtocol, workerProtocols } from "./protocols.ts";
import { reserveOutput } from "./reserve-output.ts";
import type { Teller } from "./telemetry.ts";
import { targetOf } from "./work-target.ts";
import type { WorkerSettings } from "./worker.ts";

interface WorkFlags extends ConnectionOptions {
  shell?: boolean;
  labels?: string[];
  slots?: number;
  workerId?: string;
  leaseTtl?: Duration;
  heartbeat?: Duration;
  poll?: Duration;
  cancelPoll?: Duration;
  logFlush?: Duration;
  drain?: Duration;
  cwd?: string;
  conductor?: string | true;
  port?: number;
  host?: string;
  handshake: boolean;
  isolate?: "process" | "thread" | "inline";
  httpPort?: number;
  httpHost?: string;
  record?: string;
}

const notes = `A file is a module that exports tasks made by task(), in any way: by name, as default, or in a list. A pattern in quotes, such
as 'workers/**/*.ts', names every file that matches.
A worker runs in its own process, which is restarted when it ends; handlers that are not async functions run in threads of that process.
For a Stepflow orchestrator that starts its workers itself: command: longshore, args: [work, tasks.ts, --port, "0"].
For Conductor every task is a worker; its settings are read from the environment (CONDUCTOR_SERVER_URL, CONDUCTOR_AUTH_KEY,
CONDUCTOR_WORKER_ALL_THREAD_COUNT and the like). There the default of --slots is 1 for each task, of --poll 100ms and of --cancel-poll 10s.
For FlowKit set FLOWKIT_URL to a Longshore server, or KAFKA_BOOTSTRAP_SERVERS to the brokers and FLOWKIT_MONGO_URL to the database.
Ctrl-C and SIGTERM let running tasks finish (--drain); a second one does not wait.`;

export function workCommand(): Command {
  const command = new Command("work")
    .description("take tasks from a server and run them")
    .argument("[file...]", "modules that export tasks, or glob patterns");
  withConnection(command)
    .option("--shell", "run commands that name no task with sh -c: every client that can queue a job can run any command here")
    .option("--labels <labels>", "labels of this worker, such as linux,gpu", parseList)
    .option("--slots <number>", "how many tasks run at the same time (default: 10)", parseCount)
    .option("--worker-id <id>", "id of this worker at the server")
    .option("--lease-ttl <duration>", "lease duration without a heartbeat (default: 30s, for FlowKit 60s)", parseDuration)
    .option("--heartbeat <duration>", "pause between heartbeats (default: a third of the lease)", parseDuration)
    .option("--poll <duration>", "pause between polls, on servers without long polls (default: 2s)", parseDuration)
    .option("--cancel-poll <duration>", "pause between checks for a cancel (default: 2s)", parseDuration)
    .option("--log-flush <duration>", "maximum delay before log lines are sent as a batch (default: 500ms)", parseDuration)
    .option("--drain <duration>", "how long running tasks may continue after Ctrl-C (default: 20s)", parseDuration)
    .option("--cwd <folder>", "working folder of shell commands")
    .option("--conductor [url]", "take tasks from a Conductor server (default: CONDUCTOR_SERVER_URL, which also works without this option)")
    .option(
      "--port <number>",
      "listen on this port for calls of a Stepflow orchestrator; 0 takes any free port, which is printed",
      parsePort,
    )
    .option("--host <address>", "with --port: listen on this address instead of 127.0.0.1, such as 0.0.0.0 in a container")
    .option("--no-handshake", "with --port: accept work before initialize, for several workers behind a load balancer")
    .addOption(
      new Option(
        "--isolate <where>",
        "process: each worker in its own process; thread: one process, handlers that are not async in threads; inline: one thread (default: process; with --port: thread)",
      ).choices(["process", "thread", "inline"]),
    )
    .option("--http-port <number>", "serve /metrics and /health of the worker on this port of 127.0.0.1; 0 takes any free port", parsePort)
    .option("--record <file>", "append the answers of the server to a file for `longshore verify`")
    .option("--http-host <address>", "serve /metrics and /health on this address, such as 0.0.0.0 in a container")
    .action(work);
  return withExamples(
    command,
    [
      ["longshore work tasks.mjs", "the tasks of a file, for a server on this machine"],
      ["longshore work --shell --on http://build:4500 --labels linux", "runs shell commands; no file needed"],
      ["longshore work 'workers/**/*.ts' --conductor http://localhost:8080", "for a Conductor server"],
      ["longshore work tasks.ts --port 8080", "for a Stepflow orchestrator that calls its workers"],
      ["STEPFLOW_TASKS_URL=localhost:7837 longshore work tasks.ts", "for the queue of a Stepflow orchestrator"],
      ["FLOWKIT_URL=http://localhost:4500 longshore work tasks.ts", "for nodes of FlowKit's graphs, with streams"],
      ["LONGSHORE_TOKEN=... longshore work tasks.mjs --slots 50", "with a token, fifty tasks at a time"],
    ],
    notes,
  );
}

async function work(files: string[], flags: WorkFlags, command: Command): Promise<void> {
  if (files.length === 0 && !flags.shell) {
    throw new CommandFailure("there is nothing to run. Name a file that exports tasks, or pass --shell to run shell commands.");
  }
  const target = targetOf(flags, command);
  const protocol = workerProtocols[target.protocol];
  refuseWithout(protocol, command);
  const isolate = flags.isolate ?? protocol.isolate;
  if (isolate === "process" && target.protocol === "stepflow-http" && !flags.port) {
    throw new CommandFailure("--isolate process needs a --port of its own: a worker that is started again must be found where it was.");
  }
  const print = protocol.ownsOutput ? reserveOutput() : undefined;
  const { loadTasks } = await import("./load-tasks.ts");
  const tasks = await loadTasks(files);
  checkNames(tasks);
  const { tellerFor } = await import("./telemetry.ts");
  const teller = await tellerFor(target.protocol);
  const settings = { ...settingsOf(flags), ...target };
  const http = flags.httpPort === undefined ? undefined : { port: flags.httpPort, host: flags.httpHost };
  const worker = await start(tasks, settings, isolate, { http, teller, print });
  if (worker.httpUrl !== undefined) teller.tell({ level: "info", message: `metrics and health at ${worker.httpUrl}` });
  await worker.closed;
}

interface Around {
  readonly http: HttpOptions | undefined;
  readonly teller: Teller;
  readonly print: ((text: string) => void) | undefined;
}

async function start(
  tasks: readonly Task[],
  settings: WorkerSettings,
  isolate: NonNullable<WorkFlags["isolate"]>,
  around: Around,
): Promise<{ closed: Promise<void>; httpUrl: string | undefined }> {
  // Shell commands are processes already.
  if (isolate !== "process" || tasks.length === 0) {
    const { startWorker } = await import("./worker.ts");
    return startWorker(tasks, { ...settings, isolate: isolate === "inline" ? "inline" : "auto" }, around);
  }
  const { startWorkerProcesses } = await import("./worker-processes.ts");
  return startWorkerProcesses(tasks, settings, around);
}

function settingsOf(flags: WorkFlags): Omit<WorkerSettings, "on" | "protocol"> {
  const { token, shell, labels, slots, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, drain, cwd } = flags;
  const { port, host, handshake, record } = flags;
  return {
    token,
    shell,
    labels,
    slots,
    workerId,
    leaseTtl,
    heartbeat,
    poll,
    cancelPoll,
    logFlush,
    drain,
    cwd,
    port,
    host,
    handshake,
    record,
  };
}

/** What was typed and would do nothing. A variable in the environment may be meant for another command. */
function refuseWithout({ title, without }: WorkerProtocol, command: Command): void {
  for (const option of command.options) {
    const why = without[option.attributeName() as keyof WorkerSettings];
    if (why === undefined || command.getOptionValueSource(option.attributeName()) !== "cli") continue;
    throw new CommandFailure(`${option.long} is not for ${title}: ${why}.`);
  }
}

function checkNames(tasks: readonly Task[]): void {
  for (const [at, { name, module }] of tasks.entries()) {
    const earlier = tasks.findIndex((task) => task.name === name);
    if (earlier < at)
      throw new CommandFailure(`two tasks are named "${name}" (${tasks[earlier]?.module} and ${module}), expected each name once.`);
  }
}
