// Shows when each attempt waited and worked: a row for a step, a bar for an attempt. The scale fits the visible rows, and a strip above
// them shows the whole run.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { durationText, now } from "../core/format.ts";
import type { RunGraph, RunTimeline } from "../core/shapes.ts";
import { useRowsInView } from "../ui/rows-in-view.ts";
import { lookOf } from "../ui/states.tsx";

interface GanttProps {
  readonly graph: RunGraph;
  readonly timeline: RunTimeline;
  readonly selected: number | null;
  readonly onSelect: (at: number | null) => void;
  /** The moment that the other views show: milliseconds since the creation of the run. */
  readonly moment: number | null;
}

interface Bar {
  readonly queued: number;
  readonly due: number | null;
  readonly start: number | null;
  readonly end: number | null;
  readonly attempt: number;
  readonly state: string | null;
  readonly closedBy: string | null;
  readonly holder: string | null;
}

interface Row {
  readonly place: number;
  readonly label: string;
  readonly bars: Bar[];
  readonly from: number;
}

const rowHeight = 24;
const overscan = 4;

export function Gantt({ graph, timeline, selected, onSelect, moment }: GanttProps) {
  const box = useRef<HTMLDivElement>(null);
  const isWhole = useSignal(true);
  const rows = useMemo(() => rowsOf(graph, timeline), [graph, timeline]);
  const { top, height, from, to } = useRowsInView(box, rows.length, rowHeight, overscan);
  useEffect(() => {
    if (rows.length > 0) performance.mark("longshore:gantt");
  }, [rows]);
  const isOpen = timeline.endedAt === null;
  const last = isOpen ? Math.max(timeline.now ?? 0, now.value) - timeline.t0 : (timeline.endedAt ?? 0) - timeline.t0;
  const shown = rows.slice(from, to);
  const inView = rows.slice(Math.floor(top.value / rowHeight), Math.ceil((top.value + height.value) / rowHeight));
  const [begin, end] = isWhole.value || inView.length === 0 ? [0, Math.max(1, last)] : rangeOf(inView, last);
  const x = (at: number) => `${(100 * (at - begin)) / (end - begin)}%`;
  const choose = (at: number) => {
    onSelect(rows[at]?.place ?? null);
    const element = box.current;
    if (element === null) return;
    if (at * rowHeight < element.scrollTop) element.scrollTop = at * rowHeight;
    if ((at + 2) * rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = (at + 2) * rowHeight - element.clientHeight;
  };
  const active = rows.findIndex(({ place }) => place === selected);
  return (
    <div class="gantt">
      <div class="gantt-head">
        <label>
          <input
            type="checkbox"
            checked={!isWhole.value}
            onChange={(event) => {
              isWhole.value = !event.currentTarget.checked;
            }}
          />{" "}
          Scale to the rows in view
        </label>
        <span class="legend">
          <i class="bar-queued" /> waits for its time or a worker <i class="bar-held tone-busy" /> works <i class="bar-held tone-good" />{" "}
          succeeded <i class="bar-held tone-bad" /> failed
        </span>
      </div>
      <div class="gantt-axis" aria-hidden="true">
        {ticks(begin, end).map((at) => (
          <span key={at} style={{ left: x(at) }}>
            {durationText(at)}
          </span>
        ))}
      </div>
      <div
        ref={box}
        class="gantt-box"
        role="listbox"
        aria-label="Timeline of the steps"
        aria-activedescendant={active >= from && active < to ? `bar-${active}` : undefined}
        tabIndex={0}
        data-list
        onScroll={(event) => {
          top.value = event.currentTarget.scrollTop;
        }}
        onKeyDown={(event) => {
          const next = { ArrowDown: active + 1, j: active + 1, ArrowUp: active - 1, k: active - 1, Home: 0, End: rows.length - 1 }[
            event.key
          ];
          if (next === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          choose(Math.max(0, Math.min(rows.length - 1, next)));
        }}
      >
        <div class="gantt-rows" style={{ height: `${rows.length * rowHeight}px` }}>
          {shown.map((row, index) => (
            <div
              key={row.place}
              id={`bar-${from + index}`}
              class="gantt-row"
              role="option"
              aria-selected={row.place === selected}
              aria-label={spoken(row)}
              style={{ transform: `translateY(${(from + index) * rowHeight}px)` }}
              onClick={() => onSelect(row.place)}
            >
              <span class="gantt-label">{row.label}</span>
              <span class="gantt-track">
                {row.bars.map((bar) => (
                  <Bars key={`${bar.attempt} ${bar.queued}`} bar={bar} x={x} last={last} />
                ))}
                {moment !== null && <i class="bar-moment" style={{ left: x(moment) }} />}
              </span>
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

function Bars({ bar, x, last }: { bar: Bar; x: (at: number) => string; last: number }) {
  const { start, queued } = bar;
  const end = bar.end ?? last;
  const worked = start ?? end;
  const failed = bar.closedBy === "fail" || bar.closedBy === "expire" || bar.state === "failed";
  const { tone } = lookOf(failed ? "failed" : (bar.state ?? (bar.closedBy === "cancel" ? "cancelled" : "done")));
  const hint = `attempt ${bar.attempt}: waited ${durationText(worked - queued)}${start === null ? "" : `, worked ${durationText(end - start)}`}${bar.holder === null ? "" : `, ${bar.holder}`}`;
  return (
    <>
      {worked > queued && <i class="bar-queued" title={hint} style={{ left: x(queued), width: widthOf(x, queued, worked) }} />}
      {start !== null && (
        <i
          class={`bar-held tone-${tone}`}
          data-open={bar.end === null}
          title={hint}
          style={{ left: x(start), width: widthOf(x, start, end) }}
        />
      )}
    </>
  );
}

function widthOf(x: (at: number) => string, from: number, to: number): string {
  return `${Math.max(0, Number.parseFloat(x(to)) - Number.parseFloat(x(from)))}%`;
}

function spoken({ label, bars }: Row): string {
  const last = bars.at(-1);
  if (last === undefined) return `${label}, not begun`;
  return `${label}, ${lookOf(last.state ?? "done").word}, ${bars.length === 1 ? "1 attempt" : `${bars.length} attempts`}`;
}

function rowsOf(graph: RunGraph, timeline: RunTimeline): Row[] {
  const places = new Map(graph.nodes.map((node, at) => [node, at]));
  const rows = new Map<number, Row>();
  const { attempts, states, verbs, holders } = timeline;
  const named = (names: readonly string[], at: number | null | undefined) => (at === null || at === undefined ? null : (names[at] ?? null));
  attempts.step.forEach((node, at) => {
    const place = places.get(node);
    if (place === undefined) return;
    const queued = attempts.queued[at] ?? 0;
    let row = rows.get(place);
    if (row === undefined) {
      row = { place, label: graph.commands?.[place] ?? graph.ids[place] ?? "", bars: [], from: queued };
      rows.set(place, row);
    }
    row.bars.push({
      ...{ queued, due: attempts.due[at] ?? null, start: attempts.start[at] ?? null, end: attempts.end[at] ?? null },
      ...{ attempt: attempts.attempt[at] ?? 1, state: named(states, attempts.state[at]) },
      ...{ closedBy: named(verbs, attempts.closedBy[at]), holder: named(holders, attempts.holder[at]) },
    });
  });
  return [...rows.values()].sort((one, other) => one.from - other.from || one.place - other.place);
}

function rangeOf(rows: readonly Row[], last: number): [number, number] {
  let [begin, end] = [Number.POSITIVE_INFINITY, 0];
  for (const { bars } of rows) {
    for (const bar of bars) {
      begin = Math.min(begin, bar.queued);
      end = Math.max(end, bar.end ?? last);
    }
  }
  return [begin, Math.max(end, begin + 1)];
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 1.8e6, 3.6e6, 1.08e7, 4.32e7, 8.64e7, 6.048e8];

function ticks(begin: number, end: number): number[] {
  const step = steps.find((one) => (end - begin) / one <= 7) ?? (end - begin) / 5;
  const found: number[] = [];
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) found.push(at);
  return found;
}
