// Chooses what to show as the reason why a run waits, from the waits of its first open steps.

import { isDriver, type TaskRowHead } from "../board/task.ts";
import type { Waiting, WaitReason } from "../board/wait-reason.ts";
import { type Gate, turnText } from "./gate.ts";
import type { Run } from "./run.ts";
import type { RunSummaries } from "./run-summary.ts";

/** What a run waits for. */
export interface RunWaiting extends Waiting {
  /** The step that waits, and its task. Absent for a run that waits for its turn. */
  readonly step?: string;
  readonly taskId?: string;
  /** Of a run that waits for its turn: the oldest run before it. */
  readonly run?: string;
}

export interface RunWaitingDeps {
  readonly summaries: Pick<RunSummaries, "openTasks" | "gate">;
  waiting(): (task: TaskRowHead) => Promise<Waiting | null>;
}

/** The smallest is shown: first waits for a person, then waits for a worker, then waits that end by themselves. */
const ranks: Readonly<Record<WaitReason, number>> = {
  ...{ signal: 0, "no-worker": 1, paused: 1, unreachable: 1 },
  ...{ turn: 3, limit: 3, busy: 3, next: 3, sent: 3, "not-due": 4, sleeping: 5, record: 6 },
};
/** The rank of a step that a worker has: after waits for a person or a worker, and before waits that end by themselves. */
const workedOn = 2;

/** Reads what open runs wait for; null for a run that a worker works on. `gate`: where the run waits for its turn, if it does. */
export function runsWaiting({ summaries, waiting }: RunWaitingDeps): (runId: string, gate: string | null) => Promise<RunWaiting | null> {
  const why = waiting();
  return async (runId, gate) => {
    const awaited = gate === null ? null : await summaries.gate(gate);
    if (awaited !== null) return turnOf(awaited);
    let found: { readonly rank: number; readonly waiting: RunWaiting | null } | undefined;
    for (const task of await summaries.openTasks(runId)) {
      // The function waits for its steps, and those are examined separately.
      if (isDriver(task) && task.lane === null) continue;
      const reason = await why(task);
      const rank = reason === null ? workedOn : ranks[reason.reason];
      if (found !== undefined && found.rank <= rank) continue;
      found = { rank, waiting: reason && { ...reason, step: task.step, taskId: task.id } };
    }
    return found?.waiting ?? null;
  };
}

/** Where a run waits for its turn; null for a run that does not wait for it. */
export function awaitedGate({ gate, turn }: Pick<Run, "gate" | "turn">): string | null {
  return turn === null ? null : gate;
}

function turnOf(gate: Gate): RunWaiting {
  const [run] = gate.open;
  return { reason: "turn", text: turnText(gate), ...(run === undefined ? {} : { run }) };
}
