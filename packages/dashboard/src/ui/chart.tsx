// Figures over time as a picture, with the same figures as a table behind it. Bars are stacked; a line is drawn where there is a value.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { countText, durationText, timeText } from "../core/format.ts";

export interface Series {
  readonly name: string;
  /** A colour of style.css. */
  readonly tone: string;
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  readonly from: number;
  readonly stepMs: number;
  readonly series: readonly Series[];
  readonly kind: "bars" | "lines";
  readonly unit: "count" | "ms";
  /** Called with the time of a bar that was clicked. */
  readonly onPick?: (from: number, to: number) => void;
}

/** More bars than this cannot be told apart. */
const binsMax = 90;

/** The picture is drawn in these units and stretched to the page. */
const height = 100;

export function Chart({ title, from, stepMs, series, kind, unit, onPick }: ChartProps) {
  const at = useSignal<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const asTable = useSignal(false);
  const { bins, binMs } = binned(series, stepMs, kind);
  const count = bins[0]?.values.length ?? 0;
  const top = Math.max(1, ...Array.from({ length: count }, (_none, bin) => heightOf(bins, bin, kind)));
  const text = (value: number | null) => (value === null ? "-" : unit === "ms" ? durationText(value) : countText(Math.round(value)));
  useEffect(() => {
    at.value = null;
  }, [stepMs, at]);
  const timeOf = (bin: number) => from + bin * binMs;
  const shown = at.value;
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        {bins.map(({ name, tone, values }) => (
          <span key={name} class={`chart-key tone-${tone}`}>
            <i aria-hidden="true" />
            {name}
            {shown !== null && <b class="num"> {text(values[shown] ?? null)}</b>}
          </span>
        ))}
        <span class="dim num">{shown === null ? `max ${text(top)}` : timeText(timeOf(shown))}</span>
        <button
          type="button"
          class="button link"
          aria-expanded={asTable.value}
          onClick={() => {
            asTable.value = !asTable.value;
          }}
        >
          Table
        </button>
      </figcaption>
      <div
        ref={box}
        class="chart-box"
        onPointerMove={(event) => {
          const rect = event.currentTarget.getBoundingClientRect();
          at.value = Math.min(count - 1, Math.max(0, Math.floor(((event.clientX - rect.left) / rect.width) * count)));
        }}
        onPointerLeave={() => {
          at.value = null;
        }}
        onClick={() => {
          if (at.value !== null) onPick?.(timeOf(at.value), timeOf(at.value + 1));
        }}
      >
        <svg
          viewBox={`0 0 ${Math.max(1, count)} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title}. The table has the figures.`}
        >
          {shown !== null && <rect class="chart-at" x={shown} y={0} width={1} height={height} />}
          {kind === "bars" ? <Bars bins={bins} count={count} top={top} /> : <Lines bins={bins} top={top} />}
        </svg>
      </div>
      {asTable.value && <Figures bins={bins} count={count} timeOf={timeOf} text={text} />}
    </figure>
  );
}

/** One path for each series: any number of bars is one element. */
function Bars({ bins, count, top }: { bins: readonly Series[]; count: number; top: number }) {
  const base = new Array<number>(count).fill(0);
  return (
    <>
      {bins.map(({ name, tone, values }) => {
        let path = "";
        values.forEach((value, bin) => {
          if (!value) return;
          const low = base[bin] ?? 0;
          base[bin] = low + value;
          // A single failure among thousands must still be seen.
          const size = Math.max(1.5, (value / top) * height);
          path += `M${bin + 0.1} ${height - (low / top) * height}v${-size}h.8v${size}z`;
        });
        return <path key={name} class={`chart-bar tone-${tone}`} d={path} />;
      })}
    </>
  );
}

function Lines({ bins, top }: { bins: readonly Series[]; top: number }) {
  return (
    <>
      {bins.map(({ name, tone, values }) => {
        let path = "";
        let isOpen = false;
        values.forEach((value, bin) => {
          if (value === null) {
            isOpen = false;
            return;
          }
          const y = height - (value / top) * (height - 2) - 1;
          path += isOpen ? `L${bin + 0.5} ${y}` : `M${bin + 0.2} ${y}L${bin + 0.5} ${y}`;
          isOpen = true;
        });
        return <path key={name} class={`chart-line tone-${tone}`} d={path} />;
      })}
    </>
  );
}

function Figures({
  bins,
  count,
  timeOf,
  text,
}: {
  bins: readonly Series[];
  count: number;
  timeOf: (bin: number) => number;
  text: (value: number | null) => string;
}) {
  const filled = Array.from({ length: count }, (_none, bin) => bin).filter((bin) => bins.some(({ values }) => values[bin]));
  return (
    <div class="chart-table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            {bins.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {filled.reverse().map((bin) => (
            <tr key={bin}>
              <th scope="row">{timeText(timeOf(bin))}</th>
              {bins.map(({ name, values }) => (
                <td key={name}>{text(values[bin] ?? null)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {filled.length === 0 && <p class="dim">Nothing in this time.</p>}
    </div>
  );
}

function heightOf(bins: readonly Series[], bin: number, kind: ChartProps["kind"]): number {
  const values = bins.map(({ values: all }) => all[bin] ?? 0);
  return kind === "bars" ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
}

/** Joins samples until there are few enough: counts are added, times keep their largest. */
function binned(series: readonly Series[], stepMs: number, kind: ChartProps["kind"]): { bins: readonly Series[]; binMs: number } {
  const length = series[0]?.values.length ?? 0;
  const each = Math.max(1, Math.ceil(length / binsMax));
  const bins = series.map((one) => {
    const values: (number | null)[] = [];
    for (let at = 0; at < length; at += each) {
      const part = one.values.slice(at, at + each).filter((value): value is number => value !== null);
      if (part.length === 0) values.push(null);
      else values.push(kind === "bars" ? part.reduce((sum, value) => sum + value, 0) : Math.max(...part));
    }
    return { ...one, values };
  });
  return { bins, binMs: each * stepMs };
}
