// The first page: it must show within five seconds whether the server works well and what needs a person.

import { useSignal } from "@preact/signals";
import { bytesText, countText, durationText, now, plural } from "../core/format.ts";
import { touchesRuns } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import { href } from "../core/router.ts";
import { health, info } from "../core/session.ts";
import type { Counts, ErrorGroups, Page, Queue, RunList, RunSummary, Worker } from "../core/shapes.ts";
import { Why } from "../run/why.tsx";
import { Icon } from "../ui/icons.tsx";
import { lazy } from "../ui/lazy.tsx";
import { PageHead, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { Figures } from "./figures.tsx";

const later = { beginnings: lazy(async () => (await import("./beginnings.tsx")).Beginnings) };
const shownMax = 6;
const anything = () => true;

export function OverviewPage() {
  const errors = useApi<ErrorGroups>("/errors?window=24h", { on: touchesRuns, gapMs: 2_000 });
  const open = useApi<RunList>("/runs?view=summary&state=running,paused,blocked&waiting=true&limit=12", { on: anything, gapMs: 2_000 });
  const queues = useApi<Page<Queue>>("/queues?limit=1000", { on: anything, gapMs: 2_000, everyMs: 5_000 });
  const workers = useApi<Page<Worker>>("/workers?limit=1000", { everyMs: 5_000 });
  const recent = useApi<RunList>("/runs?view=summary&limit=50", { on: touchesRuns, gapMs: 2_000 });
  const counts = useApi<Counts>("/counts?by=state", { on: touchesRuns, gapMs: 2_000 });
  const rows = recent.data.value?.items;
  // The first steps stay until the user has seen all of them ticked.
  const begins = useSignal<boolean | null>(null);
  if (begins.value === null && rows !== undefined) begins.value = rows.length === 0;
  const isFresh = begins.value === true;
  const lanes = queues.data.value?.items ?? [];
  const stuck = lanes.filter(({ waiting }) => waiting !== null && waiting.reason !== "next" && waiting.reason !== "not-due");
  const needsPerson = (open.data.value?.items ?? []).filter(({ waiting }) => waiting?.reason === "signal");
  return (
    <div class="overview">
      <PageHead title="Overview" />
      <Problem error={recent.error.value} />
      <Strip lanes={lanes} workers={workers.data.value?.items ?? []} counts={counts.data.value} />
      {isFresh ? (
        <later.beginnings
          onDone={() => {
            begins.value = false;
            for (const each of [errors, open, queues, recent, counts]) each.refresh();
          }}
        />
      ) : (
        <>
          <div class="columns">
            <div class="column">
              <Needs
                stuck={stuck}
                errors={errors.data.value}
                waiting={needsPerson}
                isRead={errors.data.value !== undefined && queues.data.value !== undefined}
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
          <Figures />
        </>
      )}
    </div>
  );
}

interface StripProps {
  readonly lanes: readonly Queue[];
  readonly workers: readonly Worker[];
  readonly counts: Counts | undefined;
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
  const isOpenState = (state: string | undefined) => state === "running" || state === "paused" || state === "blocked";
  const openRuns = counts?.items.reduce((sum, { state, count }) => (isOpenState(state) ? sum + count : sum), 0);
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
        value={openRuns}
        note={counts === undefined ? "" : `${countText(counts.total - (openRuns ?? 0))} have ended`}
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
      <Figure to={href(["settings"])} name="Data" {...dataOf(info.value?.store)} />
    </ul>
  );
}

/** The sizes of a data file are known; those of a database that serves several servers are not. */
function dataOf(store: { readonly name: string; readonly parts: readonly { readonly bytes: number }[] } | undefined) {
  if (store === undefined) return { text: "", note: "" };
  if (store.parts.length === 0)
    return /postgres/i.test(store.name) ? { text: "PostgreSQL", note: store.name } : { text: "in memory", note: "gone when it stops" };
  const size = store.parts.reduce((sum, { bytes }) => sum + bytes, 0);
  return size === 0 ? { text: "in memory", note: "nothing is kept on a disk" } : { text: bytesText(size), note: store.name };
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

interface NeedsProps {
  readonly stuck: readonly Queue[];
  readonly errors: ErrorGroups | undefined;
  readonly waiting: readonly RunSummary[];
  readonly isRead: boolean;
}

/** What waits forever, and what fails. Each entry has the command that helps, or a link to the newest run that shows it. */
function Needs({ stuck, errors, waiting, isRead }: NeedsProps) {
  const groups = errors?.items.slice(0, shownMax) ?? [];
  if (!isRead) return <Card title="Needs you">{null}</Card>;
  if (stuck.length === 0 && groups.length === 0 && waiting.length === 0)
    return (
      <Card title="Needs you">
        <p class="calm tone-good">
          <Icon name="check" /> Nothing: no run has failed in the last 24 hours, and every task finds a worker.
        </p>
      </Card>
    );
  return (
    <Card title="Needs you">
      {stuck
        .slice(0, shownMax)
        .map(
          ({ lane, labels, waiting: why, ready, sent }) =>
            why !== null && (
              <Why
                key={`${lane} ${labels.join()}`}
                blocked={{ runId: null, step: plural(ready + sent, "task"), lane, labels, waiting: why }}
              />
            ),
        )}
      {groups.length > 0 && (
        <>
          <h3>Failed in the last 24 hours</h3>
          <ul class="errors">
            {groups.map(({ group, error, count, workflows, runId, firstAt, lastAt }) => (
              <li key={group}>
                <a href={href(["runs", runId])}>
                  <State state="failed" label={plural(count, "run")} />
                  <span class="error-text">{error}</span>
                </a>
                <span class="dim">
                  {workflows.slice(0, 3).join(", ")}; last <Time at={lastAt} />
                  {count > 1 && (
                    <>
                      , first <Time at={firstAt} />
                    </>
                  )}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      {waiting.length > 0 && (
        <>
          <h3>Wait for a signal</h3>
          <RunLines rows={waiting} none="" />
        </>
      )}
    </Card>
  );
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
export function Dots({ rows }: { rows: readonly Pick<RunSummary, "id" | "state" | "endedAt">[] }) {
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
