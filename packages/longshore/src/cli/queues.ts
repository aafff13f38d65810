// `longshore queues`: lists waiting tasks and why they wait.

import { Command } from "commander";
import { formatDuration } from "../core/duration.ts";
import { functionLane, functionOfLane } from "../core/turn.ts";
import type { Queue } from "./api.ts";
import { isStuck } from "./manual-states.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printList } from "./print-list.ts";

export function queuesCommand(): Command {
  const command = new Command("queues").description("list the queues, what waits in them and why");
  withJson(withConnection(command)).action(queues);
  return withExamples(command, [["longshore queues", "for example: 3 ready, no live worker has the label gpu"]]);
}

function queues(flags: ConnectionOptions & { json?: boolean }): Promise<void> {
  return printList<Queue>(flags, {
    path: "/queues",
    empty: "No lane has a task or a worker.",
    columns: ["LANE", "LABELS", "READY", "SENT", "WORKERS", "OLDEST", "WHY IT WAITS"],
    isHidden: isIdleLane,
    row: (queue, paint) => [
      laneText(queue.lane),
      queue.labels.join(", "),
      String(queue.ready),
      String(queue.sent),
      String(queue.workers),
      queue.oldestAt === null ? "" : formatDuration(Math.max(0, Date.now() - queue.oldestAt)),
      paint(isStuck(queue.waiting) ? "red" : "dim", queue.waiting?.text ?? ""),
    ],
  });
}

/** Each worker has a separate lane for the functions that it has in memory. While such a lane is empty, it is not shown. */
function isIdleLane({ lane, ready, sent }: Queue): boolean {
  const name = functionOfLane(lane);
  return name !== undefined && lane !== functionLane(name) && ready + sent === 0;
}

/** The lanes of durable functions contain their turns. */
function laneText(lane: string): string {
  const name = functionOfLane(lane);
  return name === undefined ? lane : `workflow ${name}`;
}
