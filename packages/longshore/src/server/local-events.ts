// The events of one run of a server in the program's own process. A slow reader gets only the newest state of each task, so only one state
// of each task is kept for it.

import type { RunEvent } from "../client/run-event.ts";
import { SeenStates } from "../client/seen-states.ts";
import { LongshoreError } from "../core/errors.ts";
import type { TaskRowHead } from "../engine/board/task.ts";
import { type Change, runChange, taskChange } from "../engine/run/change.ts";
import { noSuchRun } from "../engine/run/no-such-run.ts";
import type { Engine } from "./engine.ts";

export type LocalEventsDeps = Pick<Engine, "board" | "clock" | "listen" | "originOf" | "reader">;

export async function* localEvents(deps: LocalEventsDeps, id: string, signal?: AbortSignal): AsyncGenerator<RunEvent, void, void> {
  const { reader, originOf, board, clock } = deps;
  const seen = new SeenStates();
  const news = new News();
  const stopped = (): void => {
    signal?.throwIfAborted();
    if (board.dismissed.aborted) throw closed();
  };
  const changeOf = async (found: Found): Promise<Change | null> => {
    if ("kind" in found) return found;
    const { workflow, isHidden } = await originOf(found);
    return isHidden ? null : taskChange(found, workflow, clock.now());
  };
  const leave = follow(deps, id, { news, ends: [board.dismissed, ...(signal === undefined ? [] : [signal])] });
  try {
    const run = await reader.run(id);
    if (run === undefined) throw noSuchRun(id);
    // Tasks first, then the run, because the end of the run is the last event. The run is read first, so that no task is older than it.
    const current = [...(await reader.heads(id)).filter(({ state }) => state !== "forgotten"), runChange(run)];
    for (let found: readonly Found[] = current; ; found = await news.next()) {
      for (const one of found) {
        stopped();
        const change = await changeOf(one);
        if (change !== null && seen.isNew(change)) yield change;
      }
      if (seen.hasEnded) return;
      stopped();
    }
  } finally {
    leave();
  }
}

type Found = Change | TaskRowHead;

/** Collects the changes of a run, and wakes its reader when one of `ends` aborts. */
function follow({ listen }: LocalEventsDeps, id: string, { news, ends }: { news: News; ends: readonly AbortSignal[] }): () => void {
  const wake = () => news.wake();
  for (const end of ends) end.addEventListener("abort", wake, { once: true });
  const stop = listen({
    run(run) {
      if (run.id === id) news.add(runChange(run));
    },
    task(task) {
      if (task.runId !== id) return;
      const { input: _input, output: _output, ...head } = task;
      news.add(head);
    },
  });
  return () => {
    stop();
    for (const end of ends) end.removeEventListener("abort", wake);
  };
}

function closed(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The server was closed before the run ended; the run continues at the next start.");
}

/** The newest states of the tasks and the run that have changed since the last `next()`: first tasks, then the run. */
class News {
  #found = new Map<string, Found>();
  wake = (): void => {};

  add(change: Found): void {
    this.#found.set(change.id, change);
    this.wake();
  }

  async next(): Promise<Found[]> {
    if (this.#found.size === 0)
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    const found = [...this.#found.values()];
    this.#found = new Map();
    return [...found.filter((one) => !("kind" in one)), ...found.filter((one) => "kind" in one)];
  }
}
