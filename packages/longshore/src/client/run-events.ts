// The events of one run over HTTP. A broken stream is resumed after its last event. When the server cannot resume it, the current states
// are read again, and the reader gets those that it has not seen.

import { toError } from "../core/errors.ts";
import { pause } from "../core/pause.ts";
import type { RunStatus } from "./client.ts";
import { pagesOf } from "./pages.ts";
import { isTemporary, type Requests } from "./requests.ts";
import type { RunChanged, RunEvent, TaskChanged } from "./run-event.ts";
import { SeenStates } from "./seen-states.ts";

/** The delay before a broken stream is opened again. */
const reopenMs = 100;

export async function* runEvents(requests: Requests, id: string, signal: AbortSignal | undefined): AsyncGenerator<RunEvent, void, void> {
  const seen = new SeenStates();
  let lastEventId: string | undefined;
  for (;;) {
    try {
      for await (const message of requests.events("/events", {
        query: { run: id },
        signal,
        ...(lastEventId === undefined ? {} : { lastEventId }),
      })) {
        const isFirst = lastEventId === undefined;
        lastEventId = message.id ?? lastEventId;
        if (message.event === "lagged" || isFirst) {
          for (const event of await currentStates(requests, id, signal)) if (seen.isNew(event)) yield event;
        } else if (message.event === "run" || message.event === "task") {
          const event = { kind: message.event, ...JSON.parse(message.data) } as RunEvent;
          if (seen.isNew(event)) yield event;
        }
        if (seen.hasEnded) return;
      }
    } catch (thrown) {
      signal?.throwIfAborted();
      if (!isTemporary(toError(thrown))) throw thrown;
      // This request is repeated until a server responds, or until the time limit of all requests has passed.
      await requests.get(`/runs/${encodeURIComponent(id)}`, { signal });
    }
    await pause(requests.clock, reopenMs, signal);
    signal?.throwIfAborted();
  }
}

/** Tasks first, then the run, because the end of the run is the last event. The run is read first, so that no task is older than it. */
async function currentStates(requests: Requests, id: string, signal: AbortSignal | undefined): Promise<RunEvent[]> {
  const path = `/runs/${encodeURIComponent(id)}`;
  const run = await requests.get<RunStatus>(path, { signal });
  const events: RunEvent[] = [];
  const tasks = pagesOf<Omit<TaskChanged, "kind" | "workflow">>(requests, `${path}/tasks`, { query: {}, cursor: "after", signal });
  for await (const task of tasks) events.push(taskChanged(task, run.workflow));
  return [...events, runChanged(run)];
}

function runChanged({ id, workflow, state, left, failed, error, createdAt, endedAt }: RunStatus): RunChanged {
  return { kind: "run", id, workflow, state, left, failed, error, createdAt, endedAt };
}

function taskChanged(task: Omit<TaskChanged, "kind" | "workflow">, workflow: string): TaskChanged {
  const { id, runId, step, state, attempt, holder, error, startedAt, endedAt } = task;
  return { kind: "task", id, runId, workflow, step, state, attempt, holder, error, startedAt, endedAt };
}
