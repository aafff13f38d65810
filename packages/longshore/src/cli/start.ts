// `longshore start`: the server as a service. The server for a person at a terminal is in dev.ts.

import { Command } from "commander";
import type { Server } from "../server/index.ts";
import { withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { resolveSettings } from "./resolved-settings.ts";
import { type ServerFlags, serveOptions, settingsHelp, withServerFlags } from "./server-flags.ts";
import { serverTelemetry } from "./telemetry.ts";
import { untilTerminated } from "./termination.ts";

const files = `With --json, one line is printed when the server is ready:
  {"ready":true,"url":"http://127.0.0.1:4500","port":4500,"data":"/var/lib/longshore"}
The log goes to standard error, one JSON object a line.

A token is SECRET, SCOPES:SECRET or SCOPES:SECRET:NAME, with SCOPES out of worker, operator, read; a token file has one a line.

${settingsHelp}`;

export function startCommand(): Command {
  const command = new Command("start").description("run the server as a service: JSON logs, tokens beyond loopback, retention on");
  withJson(withServerFlags(command, "start")).action(start);
  return withExamples(
    command,
    [
      ["longshore start --data /var/lib/longshore", "for programs on this machine"],
      ["longshore start --host 0.0.0.0 --token-file tokens.txt", "for other machines, with tokens"],
      ["longshore start --workflows ./workflows", "with the workflows of a folder"],
      ["longshore start --store postgres://longshore@db/longshore", "with its data in PostgreSQL"],
    ],
    files,
  );
}

async function start({ json }: { json?: boolean }, command: Command): Promise<void> {
  // Signals are handled from the beginning: a supervisor may send one as soon as it reads the ready line.
  const terminated = untilTerminated();
  const { serve } = await import("../server/index.ts");
  const { values, isTyped } = await resolveSettings(command, "start");
  const flags = values as ServerFlags;
  const options = serveOptions(flags, { format: "json", isTyped });
  const server = await serve({ ...options, ...(await serverTelemetry(flags.otlpEndpoint)) });
  const { describeStore } = await import("../server/external-store.ts");
  const store = options.store === undefined ? undefined : describeStore(options.store).shown;
  if (json) printJson(readyLine(server, options.data ?? null, store));
  else process.stdout.write(`Longshore serves on ${server.url}\n`);
  await terminated;
  await server.close();
}

/** Other programs wait for this line: do not change its fields. */
function readyLine(server: Server, data: string | null, store: string | undefined) {
  return { ready: true, url: server.url, port: server.port, data, ...(store === undefined ? {} : { store }) };
}
