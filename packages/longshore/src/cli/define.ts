// `longshore define`: sends a workflow to a server, from a definition file or from code.

import { basename, extname } from "node:path";
import { Command } from "commander";
import { readNamedFile } from "../core/read-named-file.ts";
import type { Definition, WholeSchedule } from "./api.ts";
import { type Client, connect, Refusal } from "./client.ts";
import { CommandFailure, warn } from "./failure.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { nextLine } from "./schedule-lines.ts";
import { printable } from "./terminal.ts";

interface Defined {
  readonly definition: Definition;
  readonly warnings: readonly { readonly message: string; readonly line: number; readonly column: number }[];
}

const contentTypes: Readonly<Record<string, string>> = {
  ".yml": "application/yaml",
  ".yaml": "application/yaml",
  ".json": "application/json",
};

export function defineCommand(): Command {
  const command = new Command("define")
    .description("define workflows or new versions of them")
    .argument("<file...>", "definition files, or modules that export workflows and schedules");
  withJson(withConnection(command)).action(define);
  return withExamples(command, [
    ["longshore define ci.yml", "a definition file in YAML or JSON; it is called ci"],
    ["longshore define workflows.mjs", "every workflow and schedule that the module exports"],
  ]);
}

async function define(files: string[], flags: ConnectionOptions & { json?: boolean }): Promise<void> {
  const client = connect(flags);
  for (const file of files) {
    const { definitions, schedules } = await defineFile(client, file);
    for (const { definition, warnings } of definitions) {
      for (const { message, line, column } of warnings) warnAt(`${file}:${line}:${column}`, message, flags.json ?? false);
      if (flags.json) printJson(definition);
      else process.stdout.write(`${printable(`${definition.name} version ${definition.version}`)}\n`);
    }
    for (const schedule of schedules) {
      if (flags.json) printJson(schedule);
      else process.stdout.write(`${printable(nextLine(schedule))}\n`);
    }
  }
}

/** As text in the usual form, which editors turn into a link. */
function warnAt(place: string, message: string, json: boolean): void {
  if (json) warn(`${place}: ${message}`, json);
  else process.stderr.write(`${printable(`${place}: ${message}`)}\n`);
}

interface DefinedFile {
  readonly definitions: readonly Defined[];
  readonly schedules: readonly WholeSchedule[];
}

async function defineFile(client: Client, file: string): Promise<DefinedFile> {
  const ending = extname(file);
  const contentType = contentTypes[ending];
  if (contentType === undefined) return defineModule(client, file);
  const text = readText(file);
  try {
    const defined = await client.post<Defined>("/definitions", text, { contentType, query: { name: basename(file, ending) } });
    return { definitions: [defined], schedules: [] };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    // The usual form, which editors turn into a link: `file:line:column: message`.
    throw new CommandFailure(`${file}:${error.place === undefined ? " " : ""}${error.message}`, error.exitCode, {
      cause: error,
      code: error.code,
    });
  }
}

async function defineModule(client: Client, file: string): Promise<DefinedFile> {
  const { importForTasks } = await import("../core/load.ts");
  const { workflowsIn, sortExports } = await import("../module-exports.ts");
  const { storedSchedule } = await import("../client/checked-schedule.ts");
  const exported = sortExports(await importForTasks(file));
  if (exported.workflows.length + exported.schedules.length === 0) {
    throw new CommandFailure(
      `${file} exports no workflow and no schedule. Write \`export const order = graph("order", ...)\`, or name a .yml or .json file.`,
    );
  }
  const definitions: Defined[] = [];
  for (const { source } of workflowsIn([exported])) definitions.push(await client.post<Defined>("/definitions", { source }));
  const schedules: WholeSchedule[] = [];
  for (const each of exported.schedules) {
    const { name, rules, input } = await storedSchedule(each);
    schedules.push(await client.put<WholeSchedule>(`/schedules/${encodeURIComponent(name)}`, { ...rules, input }));
  }
  return { definitions, schedules };
}

function readText(file: string): string {
  try {
    return readNamedFile(file).toString();
  } catch (cause) {
    throw new CommandFailure(`${file} cannot be read: ${(cause as Error).message}.`, undefined, { cause });
  }
}
