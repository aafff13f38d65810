// `longshore definitions`: lists the workflows that can be started.

import { Command } from "commander";
import type { Definition, Page } from "./api.ts";
import { connect } from "./client.ts";
import { type ConnectionOptions, parseCount, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { painter, table } from "./terminal.ts";

export function definitionsCommand(): Command {
  const command = new Command("definitions").description("list the workflows that can be started");
  withJson(withConnection(command)).option("--limit <number>", "maximum number of results", parseCount, 100).action(definitions);
  return withExamples(command, [
    ["longshore definitions", "the newest version of each"],
    ["longshore define ci.yml", "adds a workflow"],
  ]);
}

async function definitions(flags: ConnectionOptions & { limit: number; json?: boolean }): Promise<void> {
  const page = await connect(flags).get<Page<Definition>>("/definitions", { limit: flags.limit });
  if (flags.json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    process.stdout.write("Nothing is defined yet. Try `longshore define FILE`.\n");
    return;
  }
  const rows = page.items.map(({ name, version, dialect, createdAt }) => [
    name,
    String(version),
    dialect,
    new Date(createdAt).toISOString(),
  ]);
  const lines = table(["NAME", "VERSION", "DIALECT", "DEFINED"], rows, painter(process.stdout));
  process.stdout.write(`${lines.join("\n")}\n`);
}
