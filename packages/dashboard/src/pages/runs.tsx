// All runs. The query is in the address; new runs appear by themselves.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { countText, durationText, now, plural } from "../core/format.ts";
import { serverUrl } from "../core/place.ts";
import { go, href, search, setQuery } from "../core/router.ts";
import { RunFeed } from "../core/run-feed.ts";
import { parameters, parseQuery, queryText, scans, termOf, withTerm } from "../core/run-query.ts";
import type { Action } from "../core/session.ts";
import type { RunSummary } from "../core/shapes.ts";
import { BulkBar } from "../run/bulk-bar.tsx";
import { askManyOrders, type ManyOrder, orderWords } from "../run/many-orders.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import { useKeys } from "../ui/keys.ts";
import { Button, Command, Empty, PageHead, Problem, Time } from "../ui/parts.tsx";
import { lookOf, runStates, State } from "../ui/states.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { QueryBox } from "./query-box.tsx";

export function RunsPage() {
  const query = search.value.get("q") ?? "";
  const terms = parseQuery(query);
  const place = useRef<HTMLDivElement>(null);
  const marked = useSignal<ReadonlySet<string>>(new Set());
  const isAll = useSignal(false);
  const lastMarked = useRef("");
  const feed = useMemo(() => new RunFeed(query, () => isUserIn(place.current)), [query]);
  useEffect(() => {
    feed.start();
    return () => feed.stop();
  }, [feed]);
  const show = (text: string) => setQuery({ q: text });
  const states = termOf(terms, "state").split(",").filter(Boolean);
  const toggle = (state: string) => {
    const next = states.includes(state) ? states.filter((one) => one !== state) : [...states, state];
    show(queryText(withTerm(terms, "state", next.join(","))));
  };
  useKeys([
    { keys: "/", what: "Write a query", act: () => document.getElementById("query")?.focus() },
    { keys: "u", what: "Show newer runs", act: () => void feed.refresh() },
  ]);
  const rows = feed.rows.value;
  const isEmpty = rows.length === 0 && feed.state.value === "end";
  const mark = ({ id }: RunSummary, isRange: boolean) => {
    const next = new Set(marked.value);
    const [from, to] = [rows.findIndex((row) => row.id === lastMarked.current), rows.findIndex((row) => row.id === id)];
    if (isRange && from >= 0) for (const row of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(row.id);
    else if (!next.delete(id)) next.add(id);
    lastMarked.current = id;
    isAll.value = false;
    marked.value = next;
  };
  const chooseNone = () => {
    marked.value = new Set();
    isAll.value = false;
  };
  const isMarking = marked.value.size > 0 || isAll.value;
  const orderMany = (order: ManyOrder) =>
    askManyOrders(order, isAll.value ? { filter: filterOf(terms) } : { ids: [...marked.value] }, chooseNone);
  return (
    <div class="list-page" ref={place}>
      <PageHead title="Runs" />
      <QueryBox value={query} onChange={show} />
      <div class="filters">
        <span class="filter-group" role="group" aria-label="States">
          {runStates.map((state) => (
            <button
              type="button"
              key={state}
              class={`chip tone-${lookOf(state).tone}`}
              aria-pressed={states.includes(state)}
              onClick={() => toggle(state)}
            >
              <Icon name={lookOf(state).icon} />
              {lookOf(state).word}
            </button>
          ))}
        </span>
        <span class="filter-group" role="group" aria-label="Time">
          {["15m", "6h", "7d"].map((span) => (
            <Button
              key={span}
              label={`Last ${span}`}
              pressed={termOf(terms, "after") === span}
              onClick={() => show(queryText(withTerm(terms, "after", termOf(terms, "after") === span ? "" : span)))}
            />
          ))}
        </span>
        <Progress feed={feed} isSearch={scans(terms)} />
      </div>
      <Problem error={feed.error.value} />
      <BulkBar />
      {isMarking && (
        <div class="marked" role="region" aria-label="Chosen runs">
          <span>{isAll.value ? allText(feed, query) : `${plural(marked.value.size, "run")} chosen`}</span>
          {!isAll.value && (
            <Button
              label={query === "" ? "Choose all runs" : "Choose all that match"}
              onClick={() => {
                isAll.value = true;
              }}
            />
          )}
          {orders.map(({ order, icon, needs }) => (
            <Button key={order} icon={icon} label={orderWords[order].verb} needs={needs} onClick={() => orderMany(order)} />
          ))}
          {!isAll.value && marked.value.size === 2 && (
            <Button
              label="Compare"
              onClick={() => {
                const [b = "", a = ""] = [...marked.value].sort().reverse();
                go(href(["compare"], { a, b }));
              }}
            />
          )}
          <Button label="Choose none" onClick={chooseNone} />
        </div>
      )}
      {feed.newer.value > 0 && (
        <button type="button" class="newer" onClick={() => void feed.refresh()}>
          {plural(feed.newer.value, "newer run")}. Show
        </button>
      )}
      {isEmpty && query === "" && (
        <Empty title="Nothing has run here yet.">
          <p>
            A run begins with a workflow; the <a href={href([])}>overview</a> leads to a first one. When there is one, this starts it:
          </p>
          <Command text={`npx longshore run NAME --follow --on ${serverUrl}`} />
        </Empty>
      )}
      {isEmpty && query !== "" && (
        <Empty title="No run matches.">
          <Button label="Show all runs" onClick={() => show("")} />
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Runs"
          rows={rows}
          columns={columns}
          narrow={narrowRow}
          keyOf={({ id }) => id}
          onOpen={({ id }) => go(href(["runs", id]))}
          onSelect={mark}
          isSelected={({ id }) => isAll.value || marked.value.has(id)}
          onEnd={() => void feed.more()}
          {...(scans(terms) || feed.of.value === null || query !== "" ? {} : { total: feed.of.value })}
        />
      )}
    </div>
  );
}

const orders: readonly { readonly order: ManyOrder; readonly icon: IconName; readonly needs: Action }[] = [
  { order: "retry", icon: "retry", needs: "run.steer" },
  { order: "cancel", icon: "stop", needs: "run.steer" },
  { order: "pause", icon: "pause", needs: "run.steer" },
  { order: "resume", icon: "play", needs: "run.steer" },
  { order: "rerun", icon: "runs", needs: "run.start" },
  { order: "remove", icon: "cross", needs: "run.remove" },
];

function allText({ rows, of, state }: RunFeed, query: string): string {
  if (state.value === "end") return `All ${plural(rows.value.length, "run")} chosen`;
  return query === "" && of.value !== null ? `All ${plural(of.value, "run")} chosen` : "All runs that match are chosen";
}

/** The filters of the list in the form of an order. Relative times of the query are counted from now. */
function filterOf(terms: Parameters<typeof parameters>[0]): Record<string, string | string[]> {
  const given = parameters(terms, now.peek());
  given.delete("view");
  return Object.fromEntries(
    [...new Set(given.keys())].map((name) => [name, given.getAll(name).length > 1 ? given.getAll(name) : (given.get(name) ?? "")]),
  );
}

/** While the pointer or the focus is in the list, or it is scrolled, its rows must not move. */
function isUserIn(place: HTMLElement | null): boolean {
  const list = place?.querySelector(".table-box");
  if (!list) return false;
  return list.matches(":hover") || list.contains(document.activeElement) || list.scrollTop > 0;
}

function Progress({ feed, isSearch }: { feed: RunFeed; isSearch: boolean }) {
  const { rows, looked, of, state } = feed;
  const found = plural(rows.value.length, "run");
  if (!isSearch)
    return (
      <span class="dim progress" role="status">
        {state.value === "end" ? found : `${found} read`}
        {of.value === null ? "" : `, ${countText(Math.max(of.value, rows.value.length))} stored`}
      </span>
    );
  return (
    <span class="progress" role="status">
      Looked at {countText(looked.value)}
      {of.value === null ? "" : ` of ${countText(of.value)}`}, {countText(rows.value.length)} found
      {state.value === "reading" && <Button label="Stop" onClick={() => feed.pause()} />}
      {(state.value === "stopped" || state.value === "idle") && <Button label="Go on" onClick={() => void feed.more()} />}
    </span>
  );
}

/** On a phone: what failed, when, and its error. */
function narrowRow({ id, state, workflow, createdAt, endedAt, firstError, steps, left }: RunSummary) {
  return (
    <span class="narrow-row">
      <State state={state} />
      <a class="strong clip" href={href(["runs", id])}>
        {workflow}
      </a>
      <span class="dim">
        <Time at={createdAt} />
      </span>
      <span class={`clip ${firstError === null ? "dim" : "error-text"}`}>
        {firstError ?? `${Math.max(0, steps - left)} of ${steps} steps, ${durationText((endedAt ?? now.value) - createdAt)}`}
      </span>
    </span>
  );
}

export const columns: readonly Column<RunSummary>[] = [
  { name: "State", width: "112px", cell: ({ state }) => <State state={state} /> },
  {
    name: "Workflow",
    width: "minmax(130px, 2fr)",
    cell: ({ id, workflow, version }) => (
      <a class="strong" href={href(["runs", id])}>
        {workflow}
        {version !== null && version > 1 && <span class="dim"> v{version}</span>}
      </a>
    ),
  },
  { name: "Run", width: "minmax(90px, 1fr)", minor: true, cell: ({ id, alias }) => <code title={id}>{alias ?? shortId(id)}</code> },
  { name: "Began", width: "100px", cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: "Took", width: "92px", numeric: true, cell: ({ createdAt, endedAt }) => durationText((endedAt ?? now.value) - createdAt) },
  {
    name: "Steps",
    width: "92px",
    minor: true,
    cell: ({ steps, left, failed }) => <StepBar steps={steps} left={left} failed={failed} />,
  },
  { name: "Retries", width: "64px", numeric: true, minor: true, cell: ({ retries }) => (retries === 0 ? "" : retries) },
  {
    name: "Error",
    width: "minmax(120px, 3fr)",
    minor: true,
    cell: ({ firstError }) => (firstError === null ? "" : <span class="error-text">{firstError}</span>),
  },
];

/** Ids begin with a time, so only their end is distinctive. */
function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}

function StepBar({ steps, left, failed }: { steps: number; left: number; failed: number }) {
  const total = Math.max(1, steps, left);
  const done = Math.max(0, steps - left - failed);
  return (
    <span class="step-bar" title={`${done} done, ${failed} failed, ${left} open`}>
      <span class="num">
        {done}/{Math.max(steps, done + left + failed)}
      </span>
      <i aria-hidden="true">
        <b class="tone-good" style={{ width: `${(100 * done) / total}%` }} />
        <b class="tone-bad" style={{ width: `${(100 * failed) / total}%` }} />
      </i>
    </span>
  );
}
