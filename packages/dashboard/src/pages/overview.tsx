// The first page: it must show within five seconds whether the server works well and what needs a person.

import { bytesText, countText, durationText, now, plural } from "../core/format.ts";
import { useApi } from "../core/resource.ts";
import { href } from "../core/router.ts";
import { health, info } from "../core/session.ts";
import type { Page, Queue, RunList, RunSummary, Worker } from "../core/shapes.ts";
import { Why } from "../run/why.tsx";
import { Icon } from "../ui/icons.tsx";
import { PageHead, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { Beginnings } from "./beginnings.tsx";

const shownMax = 6;
const aboutRuns = (change: { kind: string }) => change.kind === "run";
const anything = () => true;

export function OverviewPage() {
  const failed = useApi<RunList>("/runs?view=summary&state=failed,timed-out&limit=12", { on: aboutRuns });
  const open = useApi<RunList>("/runs?view=summary&state=running,paused,blocked&waiting=true&limit=12", { on: anything, gapMs: 2_000 });
  const queues = useApi<Page<Queue>>("/queues?limit=1000", { on: anything, gapMs: 2_000, everyMs: 5_000 });
  const workers = useApi<Page<Worker>>("/workers?limit=1000", { everyMs: 5_000 });
  const recent = useApi<RunList>("/runs?view=summary&limit=50", { on: aboutRuns });
  const server = useApi<{ counts: { openRuns: number; endedRuns: number } }>("/info", { on: aboutRuns, gapMs: 2_000 });
  const rows = recent.data.value?.items;
  const isFresh = rows?.length === 0 && (workers.data.value?.items.length ?? 0) === 0;
  const lanes = queues.data.value?.items ?? [];
  const stuck = lanes.filter(({ waiting }) => waiting !== null && waiting.reason !== "next" && waiting.reason !== "not-due");
  return (
    <div class="overview">
      <PageHead title="Overview" />
      <Problem error={recent.error.value} />
      <Strip lanes={lanes} workers={workers.data.value?.items ?? []} counts={server.data.value?.counts} />
      {isFresh ? (
        <Beginnings />
      ) : (
        <div class="columns">
          <div class="column">
            <Needs
              stuck={stuck}
              failed={failed.data.value?.items ?? []}
              isRead={failed.data.value !== undefined && queues.data.value !== undefined}
            />
          </div>
          <div class="column">
            <Card title="Open runs" to={href(["runs"], { q: "state:running,paused,blocked" })}>
              <RunLines rows={open.data.value?.items ?? []} none="No run is open." />
            </Card>
            <Card title="Newest runs" to={href(["runs"])}>
              <Dots rows={rows ?? []} />
              <RunLines rows={(rows ?? []).slice(0, shownMax)} none="Nothing has run yet." />
            </Card>
          </div>
        </div>
      )}
    </div>
  );
}

interface StripProps {
  readonly lanes: readonly Queue[];
  readonly workers: readonly Worker[];
  readonly counts: { readonly openRuns: number; readonly endedRuns: number } | undefined;
}

/** The state of the server in figures; each leads to its page. */
function Strip({ lanes, workers, counts }: StripProps) {
  const isWell = health.value?.status === "ok";
  const oldest = lanes.reduce<number | null>(
    (least, { oldestAt }) => (oldestAt !== null && (least === null || oldestAt < least) ? oldestAt : least),
    null,
  );
  const ready = lanes.reduce((sum, lane) => sum + lane.ready + lane.sent, 0);
  const live = workers.filter(({ status }) => status === "idle" || status === "busy");
  const busy = live.filter(({ status }) => status === "busy").length;
  const size = info.value?.store.parts.reduce((sum, { bytes }) => sum + bytes, 0) ?? 0;
  return (
    <ul class="strip" aria-label="State of the server">
      <li class={`tone-${health.value === null ? "idle" : isWell ? "good" : "bad"}`}>
        <a href={href(["settings"])}>
          <span class="strip-name">Server</span>
          <strong>
            <Icon name={isWell ? "check" : "warn"} /> {health.value === null ? "unknown" : isWell ? "well" : "cannot store"}
          </strong>
          <span class="dim">{health.value === null ? "" : `up for ${durationText(health.value.uptimeSeconds * 1_000)}`}</span>
        </a>
      </li>
      <Figure
        to={href(["runs"], { q: "state:running,paused,blocked" })}
        name="Open runs"
        value={counts?.openRuns}
        note={counts === undefined ? "" : `${countText(counts.endedRuns)} have ended`}
      />
      <Figure
        to={href(["queues"])}
        name="Tasks that wait"
        value={ready}
        note={oldest === null ? "none waits" : `oldest for ${durationText(now.value - oldest)}`}
        tone={ready > 0 && live.length === 0 ? "bad" : undefined}
      />
      <Figure
        to={href(["workers"])}
        name="Workers"
        value={live.length}
        note={`${busy} busy`}
        tone={live.length === 0 ? "warn" : undefined}
      />
      <Figure to={href(["settings"])} name="Data" text={size === 0 ? "in memory" : bytesText(size)} note={info.value?.store.name ?? ""} />
    </ul>
  );
}

interface FigureProps {
  readonly to: string;
  readonly name: string;
  readonly value?: number | undefined;
  readonly text?: string;
  readonly note: string;
  readonly tone?: string | undefined;
}

function Figure({ to, name, value, text, note, tone }: FigureProps) {
  return (
    <li class={tone === undefined ? "" : `tone-${tone}`}>
      <a href={to}>
        <span class="strip-name">{name}</span>
        <strong class="num">{text ?? (value === undefined ? "…" : countText(value))}</strong>
        <span class="dim">{note}</span>
      </a>
    </li>
  );
}

export function Card({ title, to, children }: { title: string; to?: string; children: preact.ComponentChildren }) {
  return (
    <section class="card" aria-label={title}>
      <h2>{to === undefined ? title : <a href={to}>{title}</a>}</h2>
      {children}
    </section>
  );
}

/** Similar failures are one line: what fails, how often, since when. */
function Needs({ stuck, failed, isRead }: { stuck: readonly Queue[]; failed: readonly RunSummary[]; isRead: boolean }) {
  const groups = grouped(failed);
  if (!isRead) return <Card title="Needs you">{null}</Card>;
  if (stuck.length === 0 && groups.length === 0)
    return (
      <Card title="Needs you">
        <p class="calm tone-good">
          <Icon name="check" /> Nothing: no run has failed, and every task finds a worker.
        </p>
      </Card>
    );
  return (
    <Card title="Needs you">
      {stuck
        .slice(0, shownMax)
        .map(
          ({ lane, labels, waiting, ready, sent }) =>
            waiting !== null && (
              <Why key={`${lane} ${labels.join()}`} blocked={{ runId: null, step: plural(ready + sent, "task"), lane, labels, waiting }} />
            ),
        )}
      {groups.length > 0 && <h3>Failed runs</h3>}
      <ul class="errors">
        {groups.map(({ error, workflows, runs, last }) => (
          <li key={error}>
            <a
              href={
                runs.length === 1
                  ? href(["runs", last.id])
                  : href(["runs"], { q: `state:failed,timed-out error:${JSON.stringify(error.slice(0, 60).replaceAll('"', ""))}` })
              }
            >
              <State state={last.state} label={plural(runs.length, "run")} />
              <span class="error-text">{error}</span>
            </a>
            <span class="dim">
              {workflows.join(", ")}, <Time at={last.endedAt ?? last.createdAt} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function grouped(failed: readonly RunSummary[]) {
  const groups = new Map<string, { error: string; workflows: string[]; runs: RunSummary[]; last: RunSummary }>();
  for (const run of failed) {
    const error = run.firstError ?? "without a message";
    const found = groups.get(error);
    if (found === undefined) groups.set(error, { error, workflows: [run.workflow], runs: [run], last: run });
    else {
      found.runs.push(run);
      if (!found.workflows.includes(run.workflow)) found.workflows.push(run.workflow);
    }
  }
  return [...groups.values()].slice(0, shownMax);
}

function RunLines({ rows, none }: { rows: readonly RunSummary[]; none: string }) {
  if (rows.length === 0) return <p class="dim">{none}</p>;
  return (
    <ul class="run-lines">
      {rows.slice(0, shownMax).map(({ id, state, workflow, createdAt, endedAt, firstError, waiting }) => (
        <li key={id}>
          <State state={state} />
          <a class="strong" href={href(["runs", id])}>
            {workflow}
          </a>
          <span class="dim clip">{firstError ?? (waiting ? `${waiting.step}: ${waiting.text}` : "")}</span>
          <span class="num dim">{durationText((endedAt ?? now.value) - createdAt)}</span>
        </li>
      ))}
    </ul>
  );
}

/** The ends of the last runs as dots, newest at the right. */
export function Dots({ rows }: { rows: readonly RunSummary[] }) {
  const ended = rows
    .filter(({ endedAt }) => endedAt !== null)
    .slice(0, 40)
    .reverse();
  if (ended.length === 0) return null;
  const good = ended.filter(({ state }) => state === "succeeded").length;
  return (
    <p class="dots" role="img" aria-label={`${good} of the last ${ended.length} runs succeeded`}>
      {ended.map(({ id, state }) => (
        <i key={id} class={`tone-${state === "succeeded" ? "good" : state === "cancelled" ? "calm" : "bad"}`} />
      ))}
    </p>
  );
}
