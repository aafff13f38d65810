// `longshore definitions`: lists the workflows that can be started.

import { Command } from "commander";
import type { Definition } from "./api.ts";
import { type ConnectionOptions, parseCount, withConnection, withExamples, withJson } from "./options.ts";
import { printList } from "./print-list.ts";

export function definitionsCommand(): Command {
  const command = new Command("definitions").description("list the workflows that can be started");
  withJson(withConnection(command)).option("--limit <number>", "maximum number of results", parseCount, 100).action(definitions);
  return withExamples(command, [
    ["longshore definitions", "the newest version of each"],
    ["longshore define ci.yml", "adds a workflow"],
  ]);
}

function definitions({ limit, ...flags }: ConnectionOptions & { limit: number; json?: boolean }): Promise<void> {
  return printList<Definition>(flags, {
    path: "/definitions",
    limit,
    empty: "Nothing is defined yet. Try `longshore define FILE`.",
    columns: ["NAME", "VERSION", "DIALECT", "DEFINED", "STARTS ON"],
    row: ({ name, version, dialect, createdAt, events = [] }) => [
      ...[name, String(version), dialect, new Date(createdAt).toISOString()],
      events.join(", "),
    ],
  });
}
