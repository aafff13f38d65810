// `longshore dev`: the server for a person at a terminal. It prints sample workers to copy, shows why tasks wait, and can run a worker
// file.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Command, Option } from "commander";
import type { ProtocolHints } from "../protocols/hints.ts";
import type { Server } from "../server/index.ts";
import { CommandFailure } from "./failure.ts";
import { withExamples } from "./options.ts";
import type { RestartingWorker } from "./restarting-worker.ts";
import { type ServerFlags, serveOptions, withServerFlags } from "./server-flags.ts";
import { type Paint, painter } from "./terminal.ts";
import { untilTerminated } from "./termination.ts";
import { waitingLine } from "./waiting-line.ts";

/** The length of the token for the worker of `dev --worker`: too long to guess. */
const tokenBytes = 32;

interface DevFlags extends ServerFlags {
  worker?: string;
}

export function devCommand(): Command {
  const command = new Command("dev").description("run the server at a terminal: reports why tasks wait, prints sample workers");
  withServerFlags(command, { logLevel: "warn" })
    .option("--worker <file>", "run this file as a worker; restart it when it changes")
    .addOption(new Option("--store <url>").hideHelp())
    .action(dev);
  return withExamples(
    command,
    [
      ["longshore dev", "on port 4500, with the data in ./.longshore"],
      ["longshore dev --ephemeral --workflows ./workflows", "keeps nothing on disk"],
      ["longshore dev --worker tasks.mjs", "with a worker that is restarted on change"],
    ],
    "The worker file exports tasks, or calls work() itself with process.env.LONGSHORE_URL.",
  );
}

async function dev(flags: DevFlags): Promise<void> {
  const terminated = untilTerminated();
  refuseStore(flags);
  if (flags.worker !== undefined && !existsSync(flags.worker)) throw new CommandFailure(`the worker file ${flags.worker} does not exist.`);
  const { serve } = await import("../server/index.ts");
  const { protocolHints } = await import("./protocols.ts");
  const asksToken = flags.token !== undefined || flags.tokenFile !== undefined;
  const token = asksToken && flags.worker !== undefined ? randomBytes(tokenBytes).toString("base64url") : undefined;
  const options = serveOptions(flags, { format: "text" });
  const tokens = [...(options.tokens ?? []), ...(token === undefined ? [] : [`worker:${token}:dev-worker`])];
  const server = await serve({ ...options, tokens, badWorkflows: "skip" });
  const hints = await protocolHints({ url: server.url ?? "", asksToken, flags });
  const paint = painter(process.stdout);
  const say = (text: string) => void process.stdout.write(`${text}\n`);
  say(welcome(server, flags, hints, paint));
  const stopWatching = server.watchWaiting((news) => say(waitingLine(news, hints, paint)));
  const worker = flags.worker === undefined ? undefined : await startWorker(flags.worker, server, { flags, token, paint, say });
  await terminated;
  say("");
  stopWatching();
  await worker?.stop();
  await server.close();
}

/** A person who tries something out must not change the data of a service. */
function refuseStore({ store, data, ephemeral }: DevFlags): void {
  if (store !== undefined)
    throw new CommandFailure("dev keeps its data in a folder, on SQLite. For data in PostgreSQL use `longshore start --store`.");
  if (!process.env.LONGSHORE_STORE) return;
  const place = ephemeral ? "in memory" : `in ${data}`;
  process.stderr.write(`longshore: dev does not use LONGSHORE_STORE: its data are ${place}, on SQLite.\n`);
}

interface WorkerPlace {
  readonly flags: DevFlags;
  /** Made only for this worker, with the scope `worker`: code in a file must not get an operator's token. */
  readonly token: string | undefined;
  readonly paint: Paint;
  readonly say: (text: string) => void;
}

async function startWorker(file: string, server: Server, { flags, token, paint, say }: WorkerPlace): Promise<RestartingWorker> {
  const { startRestartingWorker } = await import("./restarting-worker.ts");
  return startRestartingWorker({
    file,
    url: server.url ?? "",
    token,
    trust: flags.tlsCert === undefined ? undefined : resolve(flags.tlsCert),
    say: (text) => say(`${paint("cyan", "worker")} ${text}`),
    line: (text) => say(`${paint("dim", "worker |")} ${text}`),
  });
}

function welcome(server: Server, flags: DevFlags, hints: readonly ProtocolHints[], paint: Paint): string {
  const url = server.url ?? "";
  const data = flags.ephemeral ? "in memory: nothing survives this process" : `in ${flags.data}`;
  const loaded = server.workflows.defined.map(({ definition }) => definition.name);
  return [
    `${paint("bold", "Longshore")} serves on ${paint("cyan", url)}, with its data ${data}.`,
    ...(loaded.length === 0 ? [] : [`Defined from ${flags.workflows}: ${loaded.join(", ")}.`]),
    "",
    // Nothing is indented: a pasted heredoc would not find its end.
    ...hints.flatMap(({ protocol, snippets }) =>
      snippets.flatMap(({ language, how, code, tryIt }) => [
        paint("bold", `A ${protocol} worker in ${language}`) + paint("dim", `: ${how}`),
        "",
        code,
        "",
        paint("dim", "Something for it to do, in another terminal:"),
        "",
        tryIt,
        "",
      ]),
    ),
    paint("dim", "Serving until Ctrl-C. What waits, and why, is told below."),
  ].join("\n");
}
