// `longshore workers`: lists the workers of a server.

import { Command } from "commander";
import { formatDuration } from "../core/duration.ts";
import type { Worker } from "./api.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printList } from "./print-list.ts";
import type { Style } from "./terminal.ts";

const styles: Readonly<Record<Worker["status"], Style>> = { idle: "green", busy: "cyan", unheard: "yellow", offline: "dim" };

export function workersCommand(): Command {
  const command = new Command("workers").description("list the workers of a server");
  withJson(withConnection(command)).action(workers);
  return withExamples(command, [["longshore workers", "their names, what they can do and which tasks they hold"]]);
}

function workers(flags: ConnectionOptions & { json?: boolean }): Promise<void> {
  return printList<Worker>(flags, {
    path: "/workers",
    empty: `No worker is known. Start one with \`longshore work FILE --on ${flags.on}\`.`,
    columns: ["WORKER", "STATUS", "PROTOCOL", "SEEN", "DOES", "HOLDS", "LABELS"],
    row: (worker, paint) => [
      worker.id,
      paint(styles[worker.status], worker.status),
      worker.protocol,
      `${formatDuration(Math.max(0, Date.now() - worker.seenAt))} ago`,
      worker.does.join(", "),
      worker.tasks.map((task) => task.step).join(", "),
      ownLabels(worker).join(", "),
    ],
  });
}

/** Without labels that only repeat what the worker does: some protocols name each handler in a label, such as `handler:greet`. */
function ownLabels({ labels, lanes }: Worker): string[] {
  return labels.filter((label) => !lanes.some((lane) => label.endsWith(`:${lane}`)));
}
