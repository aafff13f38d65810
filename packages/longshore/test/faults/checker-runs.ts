// Rules about whole runs: when steps may start, and what an end means.
import { type Story, taskName } from "./story.ts";
import { type Violation, violation } from "./violation.ts";

/** A step is handed out only after the completions of all its dependencies were sent, and with exactly their outputs. */
export function dependenciesComeFirst({ tasks, runs }: Story): Violation[] {
  const found: Violation[] = [];
  for (const lease of [...tasks.values()].flat()) {
    const needed = runs.get(lease.runId)?.steps?.[lease.claimGot.step];
    if (!needed) continue;
    for (const step of needed) {
      const upstream = tasks.get(taskName(lease.runId, step)) ?? [];
      const told = upstream.flatMap(({ reports }) => reports.filter(({ verb }) => verb === "complete").flatMap(({ sent }) => sent));
      if (told.some((sent) => sent.tick < lease.claimGot.tick)) continue;
      const message = `it was handed out before ${step}, which it depends on, was completed`;
      found.push(violation("dependencies-first", lease.task, message, [lease.claimGot, told[0]]));
    }
    const given = Object.keys(lease.claimGot.upstream).sort();
    if (given.join() === [...needed].sort().join()) continue;
    const message = `it was given the outputs of [${given}] and depends on [${needed}]`;
    found.push(violation("dependencies-first", lease.task, message, [lease.claimGot]));
  }
  return found;
}

export function successIsComplete({ runs, finalRuns, finalTasks }: Story): Violation[] {
  return [...runs.values()].flatMap((run) => {
    if (!run.steps || finalRuns.get(run.id)?.state !== "succeeded") return [];
    const missing = Object.keys(run.steps).filter((step) => !finalTasks.get(taskName(run.id, step))?.completed);
    if (missing.length === 0) return [];
    return [violation("success-is-complete", run.id, `it succeeded although [${missing}] did not`, [run.started])];
  });
}

/** A start that is repeated until it gets a response creates one run. */
export function everyRunWasStartedByOneAnswer({ runs, final }: Story): Violation[] {
  return (final.listed ?? [])
    .filter((id) => !runs.get(id)?.started)
    .map((id) => violation("one-run-a-start", id, "the server has this run, and no start was answered with it", []));
}

/** An acknowledged line is in the log, and no line is in it twice, also when it was sent several times. */
export function linesAreKeptOnce({ lines, final, finalRuns }: Story): Violation[] {
  if (!final.lines) return [];
  const kept = new Map<string, number>();
  for (const line of final.lines) kept.set(line, (kept.get(line) ?? 0) + 1);
  return [...lines].flatMap(([line, { runId, sent, got }]) => {
    const times = kept.get(line) ?? 0;
    const lost = times === 0 && got?.status === 200 && finalRuns.has(runId);
    if (!lost && times < 2) return [];
    const message = `${JSON.stringify(line)} was ${lost ? "acknowledged" : "sent"} and is in the log ${times} times`;
    return [violation("acknowledged-line-kept-once", runId, message, [sent, got])];
  });
}

/** Only a client can cancel a run that was restarted after its end: messages of its earlier life must not end it. */
export function restartedRunsGoOn({ runs, finalRuns }: Story): Violation[] {
  return [...runs.values()].flatMap(({ id, restartSent: sent, restartAcknowledged: got }) => {
    if (!sent || !got || finalRuns.get(id)?.state !== "cancelled") return [];
    if ([id, ...sent.family].some((one) => runs.get(one)?.cancelSent)) return [];
    const message = "its restart was acknowledged, no client has cancelled it or a run around it, and it ended as cancelled";
    return [violation("restarted-run-goes-on", id, message, [sent, got])];
  });
}

export function everyRunEnds({ final, runs }: Story): Violation[] {
  const open = final.runs.filter((run) => !run.ended);
  const openTasks = final.tasks.filter((task) => !task.ended);
  return [
    ...open.map((run) => violation("every-run-ends", run.id, `it is still ${run.state}`, [runs.get(run.id)?.started])),
    ...openTasks.map((task) => violation("every-run-ends", taskName(task.runId, task.step), `the task is still ${task.state}`, [])),
  ];
}
