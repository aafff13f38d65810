// `longshore define`: sends a workflow to a server, from a definition file or from code.

import { basename, extname } from "node:path";
import { Command } from "commander";
import { readNamedFile } from "../core/read-named-file.ts";
import { workflowFamily } from "../core/workflow-family.ts";
import type { Definition } from "./api.ts";
import { type Client, connect, Refusal } from "./client.ts";
import { CommandFailure, warn } from "./failure.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
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
    .argument("<file...>", "definition files, or modules that export workflows");
  withJson(withConnection(command)).action(define);
  return withExamples(command, [
    ["longshore define ci.yml", "a definition file in YAML or JSON; it is called ci"],
    ["longshore define workflows.mjs", "every workflow that the module exports"],
  ]);
}

async function define(files: string[], flags: ConnectionOptions & { json?: boolean }): Promise<void> {
  const client = connect(flags);
  for (const file of files) {
    for (const { definition, warnings } of await defineFile(client, file)) {
      for (const { message, line, column } of warnings) warnAt(`${file}:${line}:${column}`, message, flags.json ?? false);
      if (flags.json) printJson(definition);
      else process.stdout.write(`${printable(`${definition.name} version ${definition.version}`)}\n`);
    }
  }
}

/** As text in the usual form, which editors turn into a link. */
function warnAt(place: string, message: string, json: boolean): void {
  if (json) warn(`${place}: ${message}`, json);
  else process.stderr.write(`${printable(`${place}: ${message}`)}\n`);
}

async function defineFile(client: Client, file: string): Promise<Defined[]> {
  const ending = extname(file);
  const contentType = contentTypes[ending];
  if (contentType === undefined) return defineModule(client, file);
  const text = readText(file);
  try {
    return [await client.post<Defined>("/definitions", text, { contentType, query: { name: basename(file, ending) } })];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    // The usual form, which editors turn into a link: `file:line:column: message`.
    throw new CommandFailure(`${file}:${error.place === undefined ? " " : ""}${error.message}`, error.exitCode, {
      cause: error,
      code: error.code,
    });
  }
}

async function defineModule(client: Client, file: string): Promise<Defined[]> {
  const { importForTasks } = await import("../core/load.ts");
  const { sortExports } = await import("../module-exports.ts");
  const { workflows } = sortExports(await importForTasks(file));
  if (workflows.length === 0) {
    throw new CommandFailure(
      `${file} exports no workflow. Write \`export const order = graph("order", ...)\`, or name a .yml or .json file.`,
    );
  }
  const defined: Defined[] = [];
  for (const { source } of workflowFamily(workflows)) defined.push(await client.post<Defined>("/definitions", { source }));
  return defined;
}

function readText(file: string): string {
  try {
    return readNamedFile(file).toString();
  } catch (cause) {
    throw new CommandFailure(`${file} cannot be read: ${(cause as Error).message}.`, undefined, { cause });
  }
}
