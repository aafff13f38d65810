// `longshore work`: a worker for the tasks that the given files export.

import { Command, Option } from "commander";
import type { Duration } from "../core/duration.ts";
import type { Task } from "../core/task.ts";
import type { WorkerProtocol, WorkerSettings, WorkFlag } from "../protocols/worker-half.ts";
import type { HttpOptions } from "../runner/http.ts";
import { CommandFailure } from "./failure.ts";
import type { LoadedFunction } from "./load-tasks.ts";
import { type ConnectionOptions, parseCount, parseDuration, parseList, parsePort, withConnection, withExamples } from "./options.ts";
import { workerProtocol, workerProtocols } from "./protocols.ts";
import { reserveOutput } from "./reserve-output.ts";
import type { WorkerOutput } from "./telemetry.ts";
import { targetOf } from "./work-target.ts";

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
  port?: number;
  host?: string;
  handshake: boolean;
  isolate?: "process" | "thread" | "inline";
  httpPort?: number;
  httpHost?: string;
  record?: string;
}

const notes = [
  `A file is a module that exports tasks made by task() and functions made by workflow(), in any way: by name, as default, or in a list. A pattern in quotes, such
as 'workers/**/*.ts', names every file that matches.
A worker runs in its own process, which is restarted when it ends; handlers that are not async functions run in threads of that process.`,
  ...workerProtocols.flatMap(({ help }) => (help.notes === undefined ? [] : [help.notes])),
  "Ctrl-C and SIGTERM let running tasks finish (--drain); a second one does not wait.",
].join("\n");

export function workCommand(): Command {
  const command = new Command("work")
    .description("take tasks from a server and run them")
    .argument("[file...]", "modules that export tasks and durable functions, or glob patterns");
  withChoices(
    withConnection(command)
      .option("--shell", "run commands that name no task with sh -c: every client that can queue a job can run any command here")
      .option("--labels <labels>", "labels of this worker, such as linux,gpu", parseList)
      .option("--slots <number>", "how many tasks run at the same time (default: 10)", parseCount)
      .option("--worker-id <id>", "id of this worker at the server")
      .option("--lease-ttl <duration>", `lease duration without a heartbeat (${defaultOf("leaseTtl", "30s")})`, parseDuration)
      .option("--heartbeat <duration>", "pause between heartbeats (default: a third of the lease)", parseDuration)
      .option("--poll <duration>", "pause between polls, on servers without long polls (default: 2s)", parseDuration)
      .option("--cancel-poll <duration>", "pause between checks for a cancel (default: 2s)", parseDuration)
      .option("--log-flush <duration>", "maximum delay before log lines are sent as a batch (default: 500ms)", parseDuration)
      .option("--drain <duration>", "how long running tasks may continue after Ctrl-C (default: 20s)", parseDuration)
      .option("--cwd <folder>", "working folder of shell commands"),
  )
    .addOption(
      new Option(
        "--isolate <where>",
        "process: each worker in its own process; thread: one process, handlers that are not async in threads; inline: one thread (default: process; with --port: thread)",
      ).choices(["process", "thread", "inline"]),
    )
    .option("--http-port <number>", "serve /metrics and /health of the worker on this port of 127.0.0.1; 0 takes any free port", parsePort)
    .option("--record <file>", "append every acknowledgement of the server to a file for `longshore verify`")
    .option("--http-host <address>", "serve /metrics and /health on this address, such as 0.0.0.0 in a container")
    .action(work);
  return withExamples(
    command,
    [
      ...workerProtocols.flatMap(({ help }) => help.examples),
      ["LONGSHORE_TOKEN=... longshore work tasks.mjs --slots 50", "with a token, fifty tasks at a time"],
    ],
    notes,
  );
}

/** The default of an option, and the different defaults of protocols. */
function defaultOf(option: keyof WorkerSettings, common: string): string {
  const others = workerProtocols.flatMap(({ title, defaults }) =>
    defaults?.[option] === undefined ? [] : [`for ${title} ${defaults[option]}`],
  );
  return `default: ${[common, ...others].join(", ")}`;
}

/** The flags that choose a protocol. */
function withChoices(command: Command): Command {
  return workerProtocols.flatMap(({ chosen }) => chosen.byFlag?.flags ?? []).reduce(withFlag, command);
}

function withFlag(command: Command, { flag, description, isPort }: WorkFlag): Command {
  return isPort ? command.option(flag, description, parsePort) : command.option(flag, description);
}

async function work(files: string[], flags: WorkFlags, command: Command): Promise<void> {
  if (files.length === 0 && !flags.shell) {
    throw new CommandFailure("there is nothing to run. Name a file that exports tasks, or pass --shell to run shell commands.");
  }
  const target = targetOf({ ...flags }, command);
  const protocol = workerProtocol(target.protocol);
  refuseWithout(protocol, command);
  const isolate = flags.isolate ?? protocol.isolate;
  if (isolate === "process" && protocol.isCalled && !flags.port) {
    throw new CommandFailure("--isolate process needs a --port of its own: a worker that is started again must be found where it was.");
  }
  const print = protocol.ownsOutput ? reserveOutput() : undefined;
  const { loadTasks } = await import("./load-tasks.ts");
  const { tasks, functions } = await loadTasks(files);
  const { workerOutput } = await import("./telemetry.ts");
  const settings = { ...settingsOf(flags), ...target };
  const output = await workerOutput(target.protocol, settings.workerId);
  const http = flags.httpPort === undefined ? undefined : { port: flags.httpPort, host: flags.httpHost };
  const worker = await start(tasks, settings, isolate, { http, output, print, functions });
  if (worker.httpUrl !== undefined) output.log({ level: "info", message: `metrics and health at ${worker.httpUrl}` });
  await worker.closed;
}

interface Around {
  readonly http: HttpOptions | undefined;
  readonly output: WorkerOutput;
  readonly print: ((text: string) => void) | undefined;
  readonly functions: readonly LoadedFunction[];
}

async function start(
  tasks: readonly Task[],
  settings: WorkerSettings,
  isolate: NonNullable<WorkFlags["isolate"]>,
  around: Around,
): Promise<{ closed: Promise<void>; httpUrl: string | undefined }> {
  // Shell commands run in processes already.
  if (isolate !== "process" || tasks.length + around.functions.length === 0) {
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

/** Refuses typed options that would have no effect. A variable in the environment may be for another command. */
function refuseWithout({ title, without }: WorkerProtocol, command: Command): void {
  for (const option of command.options) {
    const why = without[option.attributeName() as keyof WorkerSettings];
    if (why === undefined || command.getOptionValueSource(option.attributeName()) !== "cli") continue;
    throw new CommandFailure(`${option.long} is not for ${title}: ${why}.`);
  }
}
