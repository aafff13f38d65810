// `longshore workers`: who works for a server.

import { Command } from "commander";
import { formatDuration } from "../core/duration.ts";
import type { Page, Worker } from "./api.ts";
import { connect } from "./client.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { fit, painter, type Style, table } from "./terminal.ts";

/** A worker may do a thousand things; `--json` has all of them. */
const doesCharsMax = 60;

const styles: Readonly<Record<Worker["status"], Style>> = { idle: "green", busy: "cyan", unheard: "yellow", offline: "dim" };

export function workersCommand(): Command {
  const command = new Command("workers").description("list the workers of a server");
  withJson(withConnection(command)).action(workers);
  return withExamples(command, [["longshore workers", "their names, what they can do and which tasks they hold"]]);
}

async function workers(flags: ConnectionOptions & { json?: boolean }): Promise<void> {
  const page = await connect(flags).get<Page<Worker>>("/workers?limit=1000");
  if (flags.json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    process.stdout.write(`No worker is known. Start one with \`longshore work FILE --on ${flags.on}\`.\n`);
    return;
  }
  const paint = painter(process.stdout);
  const rows = page.items.map((worker) => [
    worker.id,
    paint(styles[worker.status], worker.status),
    worker.protocol,
    `${formatDuration(Math.max(0, Date.now() - worker.seenAt))} ago`,
    fit(worker.does.join(", "), doesCharsMax),
    worker.tasks.map((task) => task.step).join(", "),
    worker.labels.join(", "),
  ]);
  process.stdout.write(`${table(["WORKER", "STATUS", "PROTOCOL", "SEEN", "DOES", "HOLDS", "LABELS"], rows, paint).join("\n")}\n`);
}
