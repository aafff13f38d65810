// One step: its task, why it waits, its input and output, its attempts and its log.

import { durationText, timeText } from "../core/format.ts";
import { type Change, touchesRun } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import { href } from "../core/router.ts";
import type { Attempt, Page, Run, RunGraph, Step, TaskView } from "../core/shapes.ts";
import { Json } from "../ui/json.tsx";
import { Button, Copy, Elapsed, Facts, Problem, Tabs, Time } from "../ui/parts.tsx";
import { isOver, State } from "../ui/states.tsx";
import { askHasten, askRerunFrom, askSkip } from "./actions.tsx";
import { Logs } from "./logs.tsx";
import { Why } from "./why.tsx";

export type PanelTab = "step" | "data" | "attempts" | "log";

interface StepPanelProps {
  readonly runId: string;
  readonly runState: Run["state"];
  readonly step: Step;
  readonly graph: RunGraph;
  readonly at: number;
  readonly tab: PanelTab;
  readonly attempt: number | null;
  readonly onTab: (tab: PanelTab) => void;
  readonly onAttempt: (attempt: number | null) => void;
  readonly onClose: () => void;
}

export function StepPanel({ runId, runState, step, graph, at, tab, attempt, onTab, onAttempt, onClose }: StepPanelProps) {
  const on = (change: Change) => change.id === step.taskId || (change.kind === "tick" && touchesRun(change, runId));
  const path = step.taskId === null ? null : `/tasks/${encodeURIComponent(step.taskId)}`;
  const task = useApi<TaskView>(path, { on, gapMs: 500, everyMs: 5_000 });
  const attempts = useApi<Page<Attempt>>(path === null ? null : `${path}/attempts`, { on, gapMs: 500 });
  const row = task.data.value;
  const list = attempts.data.value?.items ?? [];
  return (
    <section class="panel" aria-label={`Step ${step.id}`}>
      <div class="panel-head">
        <State state={step.state} />
        <h2>{graph.commands?.[at] ?? step.id}</h2>
        <Copy text={step.id} label="Copy the id of the step" />
        <Button kind="icon" icon="close" label="Close the step" onClick={onClose} />
      </div>
      <Tabs<PanelTab>
        label="Parts of the step"
        active={tab}
        onPick={onTab}
        tabs={[
          { name: "step", title: "Step" },
          { name: "data", title: "Data" },
          { name: "attempts", title: "Attempts", count: list.length },
          { name: "log", title: "Log" },
        ]}
      />
      <div class="panel-body" role="tabpanel" aria-labelledby={`tab-${tab}`}>
        <Problem error={task.error.value} />
        {tab === "step" && <StepFacts {...{ runId, runState, step, row }} />}
        {tab === "data" && (
          <>
            {row === undefined && <p class="dim">The step has not begun: it has no data yet.</p>}
            {row !== undefined && <Json name="Input" value={row.input} />}
            {row !== undefined && <Json name="Output" value={row.output ?? undefined} />}
          </>
        )}
        {tab === "attempts" && <Attempts list={list} active={attempt} onPick={onAttempt} />}
        {tab === "log" && <Logs runId={runId} step={step.id} attempt={attempt} />}
      </div>
    </section>
  );
}

function StepFacts({ runId, runState, step, row }: { runId: string; runState: Run["state"]; step: Step; row: TaskView | undefined }) {
  const error = step.error ?? step.lastError;
  return (
    <>
      {step.waiting !== undefined && (
        <Why blocked={{ runId, step: step.id, lane: row?.lane ?? null, labels: row?.labels ?? [], waiting: step.waiting }} />
      )}
      {error !== null && error !== undefined && (
        <div class="error-box">
          <div class="error-head">
            <h3>{step.error === null ? "Why the attempt before failed" : "Error"}</h3>
            <Copy text={error} label="Copy the error" />
          </div>
          <pre tabIndex={0}>{error}</pre>
        </div>
      )}
      <div class="actions">
        {step.taskId !== null && (
          <Button
            icon="retry"
            label="Run again from here"
            needs="run.steer"
            blocked={isOver(runState) ? undefined : "The run has not ended."}
            onClick={() => askRerunFrom({ id: runId, state: runState }, step.id)}
          />
        )}
        {step.waiting?.reason === "not-due" && (
          <Button icon="play" label="End the delay" needs="run.steer" onClick={() => askHasten({ id: runId, state: runState })} />
        )}
        {step.state === "waiting" && (
          <Button
            icon="skip"
            label="Skip this step"
            needs="run.steer"
            blocked={isOver(runState) ? "The run has ended." : undefined}
            onClick={() => askSkip({ id: runId, state: runState }, step.id)}
          />
        )}
      </div>
      <Facts
        rows={[
          ["Kind", step.kind],
          step.attempt > 0 ? ["Attempt", String(step.attempt)] : null,
          step.holder === null ? null : ["Worker", step.holder],
          row?.lane === undefined || row.lane === null
            ? null
            : ["Lane", <a href={href(["queues"], { lane: row.lane })}>{[row.lane, ...row.labels].join(" ")}</a>],
          step.startedAt === null ? null : ["Began", <Time at={step.startedAt} />],
          step.startedAt === null ? null : ["Took", <Elapsed from={step.startedAt} to={step.endedAt} />],
          row === undefined ? null : ["Queued", <Time at={row.postedAt} />],
          row === undefined || row.lost === 0 ? null : ["Workers lost", String(row.lost)],
          step.childRunId === undefined ? null : ["Child run", <a href={href(["runs", step.childRunId])}>{step.childRunId}</a>],
          step.after.length === 0 ? null : ["After", <StepLinks runId={runId} ids={step.after} />],
          step.startedBy.length === 0 ? null : ["Started by", <StepLinks runId={runId} ids={step.startedBy} />],
        ]}
      />
      {step.deadLetters !== undefined && (
        <div>
          <h3>{step.deadLetters.total} dead letters</h3>
          <ul class="plain">
            {step.deadLetters.first.map(({ uid, reason, error: why, tries }) => (
              <li key={uid}>
                <code>{uid}</code> {reason}, tried {tries} times{why === null ? "" : `: ${why}`}
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

const linksMax = 12;

function StepLinks({ runId, ids }: { runId: string; ids: readonly string[] }) {
  return (
    <span class="links">
      {ids.slice(0, linksMax).map((id) => (
        <a key={id} href={href(["runs", runId], { step: id })}>
          {id}
        </a>
      ))}
      {ids.length > linksMax && <span>and {ids.length - linksMax} more</span>}
    </span>
  );
}

/** How an attempt ended, in words. */
const endings: Readonly<Record<string, string>> = {
  complete: "completed",
  fail: "failed",
  defer: "deferred by its worker",
  cancel: "cancelled",
  expire: "lost: its worker was silent, or its time was over",
};

function Attempts({ list, active, onPick }: { list: readonly Attempt[]; active: number | null; onPick: (attempt: number | null) => void }) {
  if (list.length === 0) return <p class="dim">No attempt has ended yet.</p>;
  return (
    <ol class="attempts">
      {list.map(({ attempt, grant, holder, error, queuedAt, startedAt, endedAt, closedBy }) => (
        <li key={grant} data-active={attempt === active}>
          <div class="attempt-head">
            <button
              type="button"
              class="button link"
              aria-pressed={attempt === active}
              onClick={() => onPick(attempt === active ? null : attempt)}
            >
              Attempt {attempt}
            </button>
            <span>{closedBy === null ? "in progress" : (endings[closedBy] ?? closedBy)}</span>
            <span class="dim">{timeText(queuedAt)}</span>
          </div>
          <p class="dim">
            waited {durationText((startedAt ?? endedAt ?? Date.now()) - queuedAt)}
            {startedAt === null ? "" : `, worked ${durationText((endedAt ?? Date.now()) - startedAt)}`}
            {holder === null ? "" : `, ${holder}`}
          </p>
          {error !== null && <pre tabIndex={0}>{error}</pre>}
        </li>
      ))}
    </ol>
  );
}
