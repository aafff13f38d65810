// Our worker with the same roles as the Python worker, as a separate program.
import { fileURLToPath } from "node:url";
import type { Child } from "../src/child.ts";
import type { Stage } from "../src/stage.ts";
import type { Place } from "./place.ts";
import type { Habit } from "./python.ts";

export interface OurWorkerOptions {
  roles: Record<string, Habit>;
  workerId: string;
  /** Tasks at the same time. Default: one, as in the Python worker. */
  slots?: number;
  /** The address of one of our servers, which stores the artifacts instead of MongoDB. */
  url?: string;
  leaseTtlSec?: number;
  hbIntervalSec?: number;
  dbCancelPollMs?: number;
}

const program = fileURLToPath(new URL("./programs/our-worker.mjs", import.meta.url));

/** Resolves when it has announced itself. */
export async function startOurWorker(stage: Stage, place: Place, options: OurWorkerOptions): Promise<Child> {
  const { brokers, mongo, database } = place;
  const store = options.url === undefined ? { mongo, database } : {};
  const settings = JSON.stringify({ brokers, ...store, ...topicsOf(place), ...options });
  const child = stage.start(process.execPath, [program, settings], { name: `our worker ${options.workerId}` });
  await child.printed(/^\{"ready":true.*\}$/m);
  return child;
}

function topicsOf({ prefix }: Place): Record<string, string> {
  return {
    topicCmdFmt: `${prefix}cmd.{type}.v1`,
    topicStatusFmt: `${prefix}status.{type}.v1`,
    topicWorkerAnnounce: `${prefix}workers.announce.v1`,
    topicQuery: `${prefix}query.tasks.v1`,
    topicReply: `${prefix}reply.tasks.v1`,
    topicSignals: `${prefix}signals.v1`,
  };
}
