// Live changes as server-sent events.
//
//   event: ready                  the stream has begun; a read from now on is at least as new as its events
//   event: run, event: task       a run or task as a commit left it
//   event: lagged                 changes were missed: the reader was too slow, or was away for too long; read the state again
//   event: tick                   with `tick`, instead of single changes: the ids of the runs that have changed, and numbers (ticks.ts)
//
// Every frame but `lagged` and `tick` carries an id to resume after.

import { z } from "zod";
import { idOfUuid } from "../../../core/ids.ts";
import { type Slices, wholeRow } from "../../../core/slices/slices.ts";
import { TokenPlaces } from "../../../core/token-places.ts";
import type { Change } from "../../../engine/run/change.ts";
import type { EventSink, ServerSentEvent } from "../../../net/http/http.ts";
import { type Changes, dataOf } from "./changes.ts";
import { type Operation, operation } from "./operation.ts";
import { listOf } from "./query.ts";
import { type Ticks, tickPeriods } from "./ticks.ts";

/** Runs that a filter may name: as many as a page shows. */
const runsMax = 200;

const runId = z
  .string()
  .max(512)
  .transform((id) => idOfUuid(id) ?? id);

const filter = z
  .strictObject({
    run: runId.optional().describe("only this run and its tasks"),
    runs: listOf(runId, runsMax).optional().describe(`only these runs and their tasks: 1 to ${runsMax} ids with commas between them`),
    workflow: z.string().max(200).optional().describe("only runs of this workflow and their tasks"),
    kinds: listOf(z.enum(["run", "task"]), 2)
      .optional()
      .describe("run, task, or both with a comma between them; both when absent"),
    tick: z
      .enum(tickPeriods.map(String))
      .transform(Number)
      .optional()
      .describe(`${tickPeriods.join(", ")} ms: one frame in this time, of all runs, in place of single changes`),
  })
  .refine(({ tick, ...others }) => tick === undefined || Object.values(others).every((value) => value === undefined), {
    path: ["tick"],
    error: "not together with others",
  });

/** Maximum number of readers. Each adds to the cost of every change. */
const readersMax = 500;

interface EventDeps {
  readonly changes: Changes;
  readonly ticks: Ticks;
  readonly slices: Slices;
}

export function eventOperations({ changes, ticks, slices }: EventDeps): Operation[] {
  const places = new TokenPlaces(readersMax, "readers of changes");
  return [
    operation({
      ...{ id: "streamEvents", tag: "events", method: "GET", path: "/events", action: "run.read" },
      summary:
        "Follow changes of runs and tasks. Resumes after Last-Event-ID where possible; otherwise the event `lagged` reports that changes were missed.",
      openEnded: true,
      query: filter,
      answers: {
        200: { description: "Events `ready`, `run`, `task`, `tick` and `lagged`.", contentType: "text/event-stream" },
        429: { description: `There are ${readersMax} readers already, or ${places.tokenMax} with this token.` },
      },
      handle({ query: { run, runs, workflow, kinds, tick }, request }) {
        const begin = places.enter(request.caller.name);
        const events = (start: (sink: EventSink) => void) => ({
          status: 200,
          events: (sink: EventSink) => {
            begin(sink.gone);
            start(sink);
          },
        });
        if (tick !== undefined) return events((sink) => ticks.follow(tick, sink));
        const wanted = run === undefined ? runs && new Set<string | null>(runs) : new Set<string | null>([run]);
        const matches = (change: Change) =>
          (kinds === undefined || kinds.includes(change.kind)) &&
          (wanted === undefined || wanted.has(change.kind === "run" ? change.id : change.runId)) &&
          (workflow === undefined || change.workflow === workflow);
        const resumed = request.headers["last-event-id"];
        const after = typeof resumed === "string" ? resumed : undefined;
        return events((sink) => void follow({ changes, slices, matches }, after, sink));
      },
    }),
  ];
}

/** What a reader follows. */
interface FollowOptions {
  readonly changes: Changes;
  readonly slices: Slices;
  readonly matches: (change: Change) => boolean;
}

/** Never rejects; ends when the reader has disconnected or the server closes. */
async function follow(options: FollowOptions, resumed: string | undefined, sink: EventSink): Promise<void> {
  const { changes } = options;
  const { gone } = sink;
  let hasNews = false;
  let resume = () => {};
  const wake = () => {
    hasNews = true;
    resume();
  };
  const leave = changes.read(wake);
  gone.addEventListener("abort", wake, { once: true });
  const place = resumed === undefined ? undefined : changes.numberOf(resumed);
  let at = place ?? changes.now;
  await send(sink, { event: "ready", id: changes.idOf(at), data: "{}" });
  // An id of another process: the number of changes since then is not known.
  if (resumed !== undefined && place === undefined) await send(sink, lagged(null));
  while (!gone.aborted) {
    hasNews = false;
    at = await pass(options, at, sink);
    if (at === changes.now && !hasNews) {
      await new Promise<void>((resolve) => {
        resume = resolve;
      });
    }
  }
  leave();
  sink.end();
}

/** Sends changes after `at`, up to a limit; returns the new position. */
async function pass({ changes, slices, matches }: FollowOptions, at: number, sink: EventSink): Promise<number> {
  const { missed, changes: found } = changes.after(at);
  // There may be hundreds of readers, and each is sent each change: writing to a socket takes as long as reading a row.
  if (found.length > 0) await slices.turn(found.length * wholeRow);
  if (missed > 0) await send(sink, lagged(missed));
  for (const noted of found) {
    if (!matches(noted.change)) continue;
    await send(sink, { event: noted.change.kind, id: changes.idOf(noted.number), data: dataOf(noted) });
  }
  return found.at(-1)?.number ?? at + missed;
}

function lagged(missed: number | null): ServerSentEvent {
  return { event: "lagged", data: JSON.stringify({ missed }) };
}

/** Waits for a slow reader; it continues from its position in the ring. */
async function send(sink: EventSink, frame: ServerSentEvent): Promise<void> {
  while (!sink.gone.aborted && !sink.send(frame)) await sink.drained();
}
