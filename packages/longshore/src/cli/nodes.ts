// `longshore nodes`: lists the servers that share the data.

import { Command } from "commander";
import { formatDuration } from "../core/duration.ts";
import type { Node } from "./api.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printList } from "./print-list.ts";

export function nodesCommand(): Command {
  const command = new Command("nodes").description("list the servers that share the data, and which of them owns it");
  withJson(withConnection(command)).action(nodes);
  return withExamples(command, [["longshore nodes --on http://10.0.0.5:4500", "ask any of them"]]);
}

function nodes(flags: ConnectionOptions & { json?: boolean }): Promise<void> {
  return printList<Node>(flags, {
    path: "/nodes",
    isWhole: true,
    empty: "No server is in the list.",
    columns: ["NODE", "URL", "STATE", "EPOCH", "LEASE", "VERSION", "UP", "SEEN"],
    row: ({ id, url, state, epoch, leaseMs, version, startedAt, seenAt }, paint) => [
      id,
      url ?? "",
      state === "owner" ? paint("green", state) : state,
      epoch === null ? "" : String(epoch),
      leaseMs === null ? "" : formatDuration(Math.max(0, leaseMs)),
      version,
      formatDuration(Math.max(0, seenAt - startedAt)),
      `${formatDuration(Math.max(0, Date.now() - seenAt))} ago`,
    ],
  });
}
