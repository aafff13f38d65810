// Shows a run while it runs: redrawn in place in a terminal, as lines in a file or a pipe.

import type { Client } from "./client.ts";
import { renderChanges, renderRun } from "./run-view.ts";
import { columnsOf, type Output, painter } from "./terminal.ts";
import { type RunView, watchRun } from "./watch-run.ts";

export interface Screen extends Output {
  readonly rows?: number;
}

/** The run is also drawn when nothing has changed, because durations grow. */
const redrawMs = 100;
const rowsDefault = 24;
/** One line each for the head, one step, and the counts of the other steps. */
const rowsMin = 3;
const control = String.fromCharCode(27);

/** Resolves with the last view, when the run has ended or is blocked; rejects when `signal` aborts. */
export function showRun(client: Client, runId: string, output: Screen, signal?: AbortSignal): Promise<RunView> {
  return output.isTTY ? drawRun(client, runId, output, signal) : listRun(client, runId, output, signal);
}

function listRun(client: Client, runId: string, output: Screen, signal?: AbortSignal): Promise<RunView> {
  const paint = painter(output);
  let before: RunView | undefined;
  const show = (view: RunView) => {
    for (const line of renderChanges(before, view, paint)) output.write(`${line}\n`);
    before = view;
  };
  return watchRun(client, runId, show, signal);
}

async function drawRun(client: Client, runId: string, output: Screen, signal?: AbortSignal): Promise<RunView> {
  const paint = painter(output);
  let latest: RunView | undefined;
  let drawn = 0;
  const draw = () => {
    if (latest === undefined) return;
    const { rows = rowsDefault } = output;
    // A wrapped line, or more lines than the screen has, could not be overwritten by moving the cursor up.
    const lines = renderRun(latest, { now: Date.now(), width: columnsOf(output) - 1, rows: Math.max(rows - 1, rowsMin), paint });
    const up = drawn === 0 ? "" : `${control}[${drawn}A`;
    // There may be fewer lines than before: what is below them is removed.
    output.write(`${up}${lines.map((line) => `${control}[2K${line}\n`).join("")}${lines.length < drawn ? `${control}[0J` : ""}`);
    drawn = lines.length;
  };
  output.write(`${control}[?25l`);
  const ticking = setInterval(draw, redrawMs);
  const showCursor = () => output.write(`${control}[?25h`);
  // Shows the cursor again, however the process ends.
  process.once("exit", showCursor);
  try {
    const show = (view: RunView) => {
      latest = view;
      draw();
    };
    return await watchRun(client, runId, show, signal);
  } finally {
    clearInterval(ticking);
    process.off("exit", showCursor);
    showCursor();
  }
}
