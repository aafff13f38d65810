// `longshore queues`: what waits, and for what.

import { Command } from "commander";
import { formatDuration } from "../core/duration.ts";
import type { Page, Queue } from "./api.ts";
import { connect } from "./client.ts";
import { isStuck } from "./manual-states.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { painter, table } from "./terminal.ts";

export function queuesCommand(): Command {
  const command = new Command("queues").description("list the queues, what waits in them and why");
  withJson(withConnection(command)).action(queues);
  return withExamples(command, [["longshore queues", "for example: 3 ready, no live worker has the label gpu"]]);
}

async function queues(flags: ConnectionOptions & { json?: boolean }): Promise<void> {
  const page = await connect(flags).get<Page<Queue>>("/queues?limit=1000");
  if (flags.json) {
    printJson(page);
    return;
  }
  if (page.items.length === 0) {
    process.stdout.write("No lane has been used since the server started.\n");
    return;
  }
  const paint = painter(process.stdout);
  const rows = page.items.map((queue) => [
    queue.lane,
    queue.labels.join(", "),
    String(queue.ready),
    String(queue.sent),
    String(queue.workers),
    queue.oldestAt === null ? "" : formatDuration(Math.max(0, Date.now() - queue.oldestAt)),
    paint(isStuck(queue.waiting) ? "red" : "dim", queue.waiting?.text ?? ""),
  ]);
  process.stdout.write(`${table(["LANE", "LABELS", "READY", "SENT", "WORKERS", "OLDEST", "WHY IT WAITS"], rows, paint).join("\n")}\n`);
}
