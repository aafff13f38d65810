// One run: its state first, why it waits or what failed, then its graph, timeline, steps, log and data. One step is selected in all of them; the
// selection is in the address.

import { useMemo } from "preact/hooks";
import { countText, durationText, now, plural, timeText } from "../core/format.ts";
import { exported } from "../core/place.ts";
import { go, href, search, setQuery } from "../core/router.ts";
import { info } from "../core/session.ts";
import type { Run, Step } from "../core/shapes.ts";
import { GraphView } from "../graph/graph-view.tsx";
import { askCancel, askPause, askRemove, askRerun, askRestart, askRetry, askSignal, blockedOrder } from "../run/actions.tsx";
import { askExport } from "../run/export-dialog.tsx";
import { Gantt } from "../run/gantt.tsx";
import { HistoryPane } from "../run/history-pane.tsx";
import { JournalPane } from "../run/journal.tsx";
import { Logs } from "../run/logs.tsx";
import { timelineAt } from "../run/moment.ts";
import { foreseenStates } from "../run/order-preview.ts";
import { Playhead } from "../run/playhead.tsx";
import { type RunData, statesOf, stepAt, useRun } from "../run/run-data.ts";
import { SignalsPane } from "../run/signals.tsx";
import { askStart } from "../run/start-dialog.tsx";
import { type PanelTab, StepPanel } from "../run/step-panel.tsx";
import { StepTable } from "../run/step-table.tsx";
import { StreamsPane } from "../run/streams.tsx";
import { Why } from "../run/why.tsx";
import { Icon } from "../ui/icons.tsx";
import { Json } from "../ui/json.tsx";
import { useKeys } from "../ui/keys.ts";
import { Button, Copy, Empty, Problem, Tabs, Time, writeClipboard } from "../ui/parts.tsx";
import { isOver, State } from "../ui/states.tsx";
import { say } from "../ui/toast.tsx";

type Pane = "graph" | "timeline" | "steps" | "commands" | "log" | "data" | "signals" | "streams" | "history";

export function RunPage({ id }: { id: string }) {
  const data = useRun(id);
  const { run, graph, steps } = data;
  const shown = search.value;
  const stepId = shown.get("step");
  const row = run.data.value;
  const at = stepAt(graph.data.value, stepId);
  const step = steps.data.value?.find((one) => one.id === stepId);
  const isFunction = graph.data.value?.isFunction ?? false;
  const pane = (shown.get("pane") ?? (isFunction ? "commands" : "graph")) as Pane;
  const tab = (shown.get("tab") ?? "step") as PanelTab;
  const attempt = shown.get("attempt");
  const pick = (found: number | null) => setQuery({ step: found === null ? null : (graph.data.peek()?.ids[found] ?? null), attempt: null });
  useRunKeys(data, (next) => setQuery({ pane: next }));
  if (run.error.value?.status === 404)
    return (
      <Empty title="There is no such run.">
        <p>
          It may have been removed: ended runs are kept for a while. <a href={href(["runs"])}>All runs</a>
        </p>
      </Empty>
    );
  if (row === undefined)
    return (
      <>
        <h1 id="title" tabIndex={-1} class="unseen">
          Run {id}
        </h1>
        <Problem error={run.error.value} />
      </>
    );
  const all = steps.data.value ?? [];
  return (
    <div class="run-page">
      <Head run={row} />
      <Summary run={row} steps={all} isFunction={isFunction} />
      <div class="run-split" data-open={step !== undefined && at !== null}>
        <section class="run-main" aria-label="Views of the run">
          <Tabs<Pane>
            label="Views of the run"
            active={pane}
            onPick={(next) => setQuery({ pane: next })}
            tabs={[
              ...(isFunction ? [{ name: "commands" as const, title: "Commands" }] : []),
              { name: "graph", title: "Graph" },
              { name: "timeline", title: "Timeline" },
              { name: "steps", title: "Steps", count: all.length },
              { name: "log", title: "Log" },
              { name: "data", title: "Data" },
              { name: "signals", title: "Signals", count: row.signals.sent },
              ...(mayStream(graph.data.value) || pane === "streams" ? [{ name: "streams" as const, title: "Streams" }] : []),
              { name: "history", title: "History" },
            ]}
          />
          <div class="run-pane" role="tabpanel" aria-labelledby={`tab-${pane}`} data-pane={pane}>
            <Views data={data} pane={pane} run={row} at={at} pick={pick} />
          </div>
        </section>
        {step !== undefined && at !== null && graph.data.value !== undefined && (
          <StepPanel
            key={step.id}
            {...{
              runId: row.id,
              runState: row.state,
              step,
              at,
              tab,
              graph: graph.data.value,
              attempt: attempt === null ? null : Number(attempt),
            }}
            onTab={(next) => setQuery({ tab: next })}
            onAttempt={(next) => setQuery({ attempt: next === null ? null : String(next), ...(next === null ? {} : { tab: "log" }) })}
            onClose={() => setQuery({ step: null, attempt: null })}
          />
        )}
      </div>
    </div>
  );
}

interface ViewsProps {
  readonly data: RunData;
  readonly pane: Pane;
  readonly run: Run;
  readonly at: number | null;
  readonly pick: (at: number | null) => void;
}

function Views({ data, pane, run, at, pick }: ViewsProps) {
  const graph = data.graph.data.value;
  const timeline = data.timeline.data.value;
  const given = search.value.get("at");
  const moment = given !== null && /^\d{1,12}$/.test(given) ? Number(given) : null;
  const states = useMemo(
    () => statesOf(timeline !== undefined && moment !== null ? timelineAt(timeline, moment) : timeline, moment ?? undefined),
    [timeline, moment],
  );
  if (pane === "log") return <Logs runId={run.id} step={null} attempt={null} />;
  if (pane === "data")
    return (
      <div class="run-data">
        <Json name="Input" value={run.input} />
        <Json name="Output" value={run.output ?? undefined} />
        {run.variables !== null && <Json name="Variables" value={run.variables} />}
      </div>
    );
  if (pane === "history") return <HistoryPane run={run} />;
  if (pane === "streams") return <StreamsPane run={run} />;
  if (pane === "signals") return <SignalsPane run={run} />;
  if (pane === "steps") return <StepTable data={data} selected={at} onSelect={pick} />;
  if (pane === "commands") return <JournalPane runId={run.id} graph={graph} onSelect={pick} selected={at} />;
  if (graph === undefined || timeline === undefined) return <Problem error={data.graph.error.value ?? data.timeline.error.value} />;
  return (
    <>
      {pane === "timeline" ? (
        <Gantt graph={graph} timeline={timeline} selected={at} onSelect={pick} moment={moment} />
      ) : (
        <GraphView graph={graph} states={foreseenStates(states, graph)} selected={at} onSelect={pick} />
      )}
      <Playhead timeline={timeline} at={moment} />
    </>
  );
}

function Head({ run }: { run: Run }) {
  return (
    <header class="run-head">
      <div class="run-title">
        <State state={run.state} />
        <h1 id="title" tabIndex={-1}>
          <a href={href(["workflows", run.workflow])}>{run.workflow}</a>
        </h1>
        <span class="run-id">
          <code>{run.alias ?? run.id}</code>
          <Copy text={run.id} label="Copy the id of the run" />
        </span>
      </div>
      {exported === null && (
        <div class="actions">
          {!isOver(run.state) && (
            <Button
              icon={run.state === "paused" ? "play" : "pause"}
              label={run.state === "paused" ? "Resume" : "Pause"}
              blocked={blockedOrder.pause(run)}
              onClick={() => askPause(run)}
            />
          )}
          <Button icon="stop" label="Cancel" blocked={blockedOrder.cancel(run)} onClick={() => askCancel(run)} />
          <Button icon="retry" label="Retry" blocked={blockedOrder.retry(run)} onClick={() => askRetry(run)} />
          <Button icon="play" label="Run again" needs="run.start" onClick={() => askRerun(run)} />
          <Button
            label="Edit and run"
            needs="run.start"
            onClick={() => askStart({ workflow: run.workflow, input: run.input, title: `Start ${run.workflow} with another input` })}
          />
          {!isOver(run.state) && <Button icon="signal" label="Signal" blocked={blockedOrder.signal(run)} onClick={() => askSignal(run)} />}
          {isOver(run.state) && <Button label="Restart" blocked={blockedOrder.restart(run)} onClick={() => askRestart(run)} />}
          {isOver(run.state) && <Button kind="danger" label="Remove" blocked={blockedOrder.remove(run)} onClick={() => askRemove(run)} />}
          <Button
            icon="save"
            label="Export"
            hint="Save this run as one HTML file that opens without a server"
            onClick={() => askExport(run)}
          />
        </div>
      )}
    </header>
  );
}

/** The most important facts are first: what failed, or why the run waits; then when and how long. */
function Summary({ run, steps, isFunction }: { run: Run; steps: readonly Step[]; isFunction: boolean }) {
  const failed = steps.filter(({ state }) => state === "failed");
  const first = failed[0];
  const { waiting } = run;
  const waits = steps.find(({ id }) => id === waiting?.step);
  const done = steps.filter(({ state }) => state === "done").length;
  const end = run.endedAt ?? (exported === null ? now.value : exported.at);
  const parent = run.parentTaskId?.slice(0, run.parentTaskId.lastIndexOf("."));
  return (
    <div class="run-summary">
      <p class="run-facts">
        <span>
          Began <Time at={run.createdAt} />
        </span>
        <span>
          {isOver(run.state) ? "Took" : "Open for"} <strong class="num">{durationText(end - run.createdAt)}</strong>
        </span>
        {steps.length > 0 && (
          <span>
            <strong class="num">{countText(done)}</strong> of <span class="num">{countText(steps.length)}</span>{" "}
            {isFunction ? "commands" : "steps"} done
          </span>
        )}
        {run.retries > 0 && <span>Retried {plural(run.retries, "time")}</span>}
        {run.startAt !== null && <span>Starts {timeText(run.startAt)}</span>}
        {parent !== undefined && parent !== "" && (
          <span>
            Part of <a href={href(["runs", parent])}>another run</a>
          </span>
        )}
      </p>
      {first !== undefined && <Failure step={first} more={failed.length - 1} run={run} />}
      {first === undefined && run.error !== null && (
        <p class="failure">
          <Icon name="warn" />
          <span class="failure-text">{run.error}</span>
        </p>
      )}
      {!isOver(run.state) && waiting?.reason === "turn" && (
        <p class="note">
          The run {waiting.text}.{waiting.run !== undefined && <a href={href(["runs", waiting.run])}> Show that run.</a>}
        </p>
      )}
      {!isOver(run.state) && waiting?.step !== undefined && (
        <Why
          blocked={{
            runId: run.id,
            step: waiting.step,
            lane: waits?.kind === "task" && waiting.signal === undefined ? waiting.step : null,
            labels: [],
            waiting,
          }}
        />
      )}
      {run.state === "paused" && <p class="note">The run is paused: no step begins until it is resumed.</p>}
    </div>
  );
}

function Failure({ step, more, run }: { step: Step; more: number; run: Run }) {
  return (
    <p class="failure">
      <Icon name="cross" />
      <span>
        <a href={href(["runs", run.id], { step: step.id })}>{step.id}</a> failed
        {step.attempt > 1 ? ` after ${step.attempt} attempts` : ""}
        {more > 0 ? `, and ${plural(more, "other step")}` : ""}:{" "}
        <span class="failure-text">{(step.error ?? run.error ?? "without a message").slice(0, 400)}</span>
      </span>
    </p>
  );
}

/** True when steps of the run may read parts of others. */
function mayStream(graph: RunData["graph"]["data"]["value"]): boolean {
  return graph !== undefined && (graph.dialect === "flowkit" || graph.edgeKinds.includes("first-part"));
}

function useRunKeys({ run, steps }: RunData, show: (pane: Pane) => void): void {
  const failed = (direction: 1 | -1) => {
    const ids = (steps.data.peek() ?? []).filter(({ state }) => state === "failed").map(({ id }) => id);
    if (ids.length === 0) return;
    const at = ids.indexOf(search.peek().get("step") ?? "");
    setQuery({ step: ids[(at + direction + ids.length) % ids.length] ?? null });
  };
  const onRun = (act: (row: Run) => void) => () => {
    const row = run.data.peek();
    if (row !== undefined) act(row);
  };
  const panes: readonly Pane[] = ["graph", "timeline", "steps", "log", "data", "signals", "history"];
  useKeys([
    ...panes.map((pane, at) => ({ keys: String(at + 1), what: `Show the ${pane}`, act: () => show(pane) })),
    { keys: "f", what: "Next failed step", act: () => failed(1) },
    { keys: "F", what: "Failed step before", act: () => failed(-1) },
    { keys: "c", what: "Cancel this run", act: onRun((row) => blockedOrder.cancel(row) === undefined && askCancel(row)) },
    { keys: "r", what: "Retry this run", act: onRun((row) => blockedOrder.retry(row) === undefined && askRetry(row)) },
    { keys: "e", what: "Edit the input and run again", act: onRun((row) => askStart({ workflow: row.workflow, input: row.input })) },
    {
      keys: "y",
      what: "Copy a link to what is shown",
      act: () => void writeClipboard(location.href).then(() => say("The link is in the clipboard.")),
    },
    {
      keys: "Escape",
      what: "Close the step, or go back to the runs",
      act: () => (search.peek().has("step") ? setQuery({ step: null, attempt: null }) : go(href(["runs"]))),
    },
  ]);
  void info;
}
