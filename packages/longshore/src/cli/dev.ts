// `longshore dev`: the server for a person at a terminal, with the tasks and workflows of files. It loads the files again after every
// change, and shows why tasks wait.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { extname, resolve } from "node:path";
import { Command, Option } from "commander";
import type { Server } from "../server/index.ts";
import type { DevApp } from "./dev-app.ts";
import { CommandFailure } from "./failure.ts";
import { failureLine } from "./failure-line.ts";
import { onOption, withExamples } from "./options.ts";
import { type ResolvedSettings, resolveSettings } from "./resolved-settings.ts";
import { type ServerFlags, serveOptions, settingsHelp, withServerFlags } from "./server-flags.ts";
import { serverTelemetry } from "./telemetry.ts";
import { type Paint, painter } from "./terminal.ts";
import { untilTerminated } from "./termination.ts";
import { waitingLine } from "./waiting-line.ts";

/** The length of the token for the worker of `dev FILE`: too long to guess. */
const tokenBytes = 32;

export function devCommand(): Command {
  const command = new Command("dev")
    .description("run the server at a terminal, with the tasks, workflows and schedules of files")
    .argument("[file...]", "modules that export tasks, workflows and schedules; loaded again when they change");
  withServerFlags(command, "dev").addOption(new Option("--store <url>").hideHelp()).action(dev);
  return withExamples(
    command,
    [
      ["longshore dev app.ts", "server, worker and definitions of a file; on port 4500, with the data in ./.longshore"],
      ["longshore dev", "only the server"],
      ["longshore dev tasks.mjs --ephemeral --workflows ./workflows", "keeps nothing on disk"],
    ],
    `A file exports tasks, workflows and schedules, or calls work() itself with process.env.LONGSHORE_URL.\n\n${settingsHelp}`,
  );
}

async function dev(files: readonly string[], typed: { store?: string }, command: Command): Promise<void> {
  const terminated = untilTerminated();
  if (typed.store !== undefined) throw new CommandFailure(noStore);
  const settings = await resolveSettings(command, "dev");
  const flags = settings.values as ServerFlags;
  const data = flags.ephemeral ? "in memory" : `in ${flags.data}`;
  reportUnused(settings, data);
  for (const file of files) checkFile(file);
  const { serve } = await import("../server/index.ts");
  const { protocolHints } = await import("./protocols.ts");
  const { nextSteps, opening } = await import("./dev-welcome.ts");
  const asksToken = flags.token !== undefined || flags.tokenFile !== undefined;
  const token = asksToken && files.length > 0 ? randomBytes(tokenBytes).toString("base64url") : undefined;
  const options = serveOptions(flags, { format: "text", isTyped: settings.isTyped });
  const tokens = [...(options.tokens ?? []), ...(token === undefined ? [] : [`worker:${token}:dev-worker`])];
  const server = await serve({ ...options, tokens, badWorkflows: "skip", ...(await serverTelemetry(flags.otlpEndpoint)) });
  const paint = painter(process.stdout);
  const say = (...lines: string[]) => void process.stdout.write(lines.map((line) => `${line}\n`).join(""));
  const welcome = {
    server,
    data: flags.ephemeral ? `${data}: nothing survives this process` : data,
    folder: flags.workflows,
    hasPages: flags.ui !== false,
    paint,
  };
  say(...opening(welcome));
  const defined = new Set(server.workflows.defined.map(({ definition }) => definition.name));
  // Comes before the first code runs: a run of an earlier start may continue at once.
  const on = onOption(server.url ?? "");
  const stopFailures = server.watchFailures((news) => say(failureLine(news, paint, on)));
  const app = files.length === 0 ? undefined : await startApp(files, { server, flags, token, paint, say, defined });
  await Promise.race([app?.ready, terminated]);
  say(...nextSteps(welcome, files, [...defined].at(-1)));
  const hints = await protocolHints({ url: server.url ?? "", asksToken, flags });
  const stopWaiting = server.watchWaiting((news) => say(waitingLine(news, hints, paint)));
  await terminated;
  say("");
  stopWaiting();
  stopFailures();
  await app?.stop();
  await server.close();
}

/** The endings of modules. */
const modules = /^\.[cm]?[jt]sx?$/;

function checkFile(file: string): void {
  if (!existsSync(file)) throw new CommandFailure(`the file ${file} does not exist.`);
  if (!modules.test(extname(file)))
    throw new CommandFailure(`${file} is not a module. For definition files, name their folder: --workflows FOLDER.`);
}

/** A person who tries something out must not change the data of a service. */
const noStore = "dev keeps its data in a folder, on SQLite. For data in PostgreSQL use `longshore start --store`.";

/**
 * Settings that are only for `start` have no effect here. Only for `store` the user gets a warning, because it names another place of the
 * data.
 */
function reportUnused({ unused }: ResolvedSettings, data: string): void {
  for (const { setting, place, source } of unused) {
    if (setting.name !== "store") continue;
    const name = source === "file" ? `store (${place})` : place;
    process.stderr.write(`longshore: dev does not use ${name}: its data are ${data}, on SQLite.\n`);
  }
}

interface AppPlace {
  readonly server: Server;
  readonly flags: ServerFlags;
  /** Made only for this worker, with the scope `worker`: code in a file must not get an operator's token. */
  readonly token: string | undefined;
  readonly paint: Paint;
  readonly say: (text: string) => void;
  /** Gets the names of the workflows. */
  readonly defined: Set<string>;
}

async function startApp(files: readonly string[], { server, flags, token, paint, say, defined }: AppPlace): Promise<DevApp> {
  const { startDevApp } = await import("./dev-app.ts");
  return startDevApp({
    files,
    url: server.url ?? "",
    token,
    trust: flags.tlsCert === undefined ? undefined : resolve(flags.tlsCert),
    async define(workflow) {
      const definition = await server.define(workflow);
      defined.add(definition.name);
      return definition;
    },
    schedule: (schedule) => server.define(schedule),
    endWorkers: (idPrefix) => server.endWorkers(idPrefix),
    say,
    line: (text) => say(`${paint("dim", "app |")} ${text}`),
  });
}
