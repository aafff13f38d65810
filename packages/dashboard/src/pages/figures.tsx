// How runs ended over time, and how long tasks waited and attempts worked.

import { touchesTasks } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import { go, href, search, setQuery } from "../core/router.ts";
import type { Stats } from "../core/shapes.ts";
import { Chart } from "../ui/chart.tsx";
import { Button, Problem } from "../ui/parts.tsx";

const windows = ["15m", "6h", "7d"] as const;

/** `only` is a parameter for one workflow or one lane, such as `&workflow=billing`. */
export function Figures({ only = "", workflow }: { only?: string; workflow?: string }) {
  const chosen = windows.find((one) => one === search.value.get("window")) ?? "15m";
  const stats = useApi<Stats>(`/stats?window=${chosen}${only}`, { on: touchesTasks, gapMs: 2_000, everyMs: 10_000 });
  const read = stats.data.value;
  const pick = (from: number, to: number) => {
    const times = `after:${new Date(from).toISOString()} before:${new Date(to).toISOString()}`;
    go(href(["runs"], { q: workflow === undefined ? times : `workflow:${JSON.stringify(workflow)} ${times}` }));
  };
  return (
    <section class="card" aria-label="Figures over time">
      <div class="card-head">
        <h2>Figures over time</h2>
        <span class="filter-group">
          {windows.map((one) => (
            <Button key={one} label={one} pressed={one === chosen} onClick={() => setQuery({ window: one })} />
          ))}
        </span>
      </div>
      <Problem error={stats.error.value} />
      {read !== undefined && (
        <div class="charts">
          <Chart
            {...{ title: "Runs that ended", from: read.from, stepMs: read.stepMs, kind: "bars", unit: "count", onPick: pick }}
            series={[
              { name: "succeeded", tone: "good", values: read.counts.succeeded },
              { name: "failed", tone: "bad", values: read.counts.failed.map((one, at) => one + (read.counts.timedOut[at] ?? 0)) },
              { name: "cancelled", tone: "calm", values: read.counts.cancelled },
            ]}
          />
          <Chart
            {...{
              title: workflow === undefined ? "Wait and work of tasks" : "Time of its runs",
              from: read.from,
              stepMs: read.stepMs,
              kind: "lines",
              unit: "ms",
            }}
            series={[
              ...(workflow === undefined ? [{ name: "waited p95", tone: "warn", values: read.times.wait.p95 }] : []),
              { name: workflow === undefined ? "worked p50" : "p50", tone: "good", values: read.times.work.p50 },
              { name: workflow === undefined ? "worked p95" : "p95", tone: "busy", values: read.times.work.p95 },
            ]}
          />
        </div>
      )}
    </section>
  );
}
