// The metrics of the engine. Existing counters are read when /metrics is read; only endings, commits and log bytes are counted here, as
// they happen. work-times.ts has the times of tasks and runs.

import type { Metrics, Sample } from "../core/metrics.ts";
import type { Stopwatch } from "../core/watchdog.ts";
import { workerStatuses } from "../engine/board/worker-view.ts";
import type { Workers } from "../engine/board/workers.ts";
import type { Room } from "../engine/stored-bytes.ts";
import type { Engine, EngineProbe } from "./engine.ts";
import { LaneFigures } from "./lane-figures.ts";
import { StoreSize } from "./store-size.ts";
import { workTimes } from "./work-times.ts";

/** Upper bounds in seconds. The lowest are for memory, the next for a good disk, and the highest for a disk that delays every caller. */
const commitBounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Upper bounds in seconds, for the delay of a timer, a busy server, a restart, and longer downtimes. */
const lateBounds = [0.01, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600, 86_400];

/** The metrics that the engine updates while it works; create it before the engine is opened. */
export function engineProbe(metrics: Metrics, watch: Stopwatch): EngineProbe {
  // Both are counted at the same moment, so that they always show the same number.
  const commits = metrics.counter("longshore_commits_total", "Transactions committed.").with();
  const times = metrics.histogram("longshore_commit_seconds", "How long a transaction took, sync included.", commitBounds).with();
  const by = ["by"];
  const missing = metrics.counter(
    "longshore_store_misses_total",
    "Reads whose rows were not in memory and were loaded from the store.",
    by,
  );
  const loads = metrics.counter("longshore_store_loads_total", "Times that such rows were loaded, many at once.", by);
  const counts = (who: string) => ({ missing: missing.with(who), loads: loads.with(who) });
  const [operations, reads] = [counts("operations"), counts("reads")];
  const bytes = metrics.counter("longshore_log_bytes_total", "Bytes of log text received.").with();
  const ticks = metrics.counter("longshore_schedule_ticks_total", "Ticks of schedules, by outcome.", ["outcome"]);
  const late = metrics
    .histogram("longshore_schedule_late_seconds", "How much later than its time the run of a tick started.", lateBounds)
    .with();
  return {
    committed(seconds, isWaiting) {
      commits.add();
      times.observe(seconds);
      if (!isWaiting) watch.ran("a transaction of the data file", seconds * 1_000);
    },
    loaded(count, isOperation) {
      const { missing, loads } = isOperation ? operations : reads;
      missing.add(count);
      loads.add();
    },
    logged: (count) => bytes.add(count),
    ticked(outcome, count, lateSeconds) {
      ticks.with(outcome).add(count);
      if (outcome === "started") late.observe(Math.max(0, lateSeconds));
    },
  };
}

/** Registers every metric that can be read from an open engine. */
export function instrument(engine: Engine, metrics: Metrics): void {
  const { board, storage, workers, logs, taskCounts: counts } = engine;
  endings(engine, metrics);
  workTimes(engine, metrics);
  metrics.sampled("counter", "longshore_tasks_claimed_total", "Tasks handed out.", () => counts.claimed);
  metrics.sampled(
    "counter",
    "longshore_attempts_closed_total",
    "Attempts that closed without a result: failed, lost with their worker, or timed out.",
    () => [sample("failed", counts.failed), sample("lost", counts.lost), sample("timed-out", counts["timed-out"])],
    ["how"],
  );
  const lane = ["lane", "labels"];
  const lanes = new LaneFigures(engine);
  metrics.before(() => lanes.count());
  metrics.sampled("gauge", "longshore_queue_ready", "Tasks that could be taken now.", () => lanes.ready(), lane);
  metrics.sampled("gauge", "longshore_queue_pollers", "Claims that wait for a task of the lane.", () => lanes.pollers(), lane);
  metrics.sampled(
    "gauge",
    "longshore_queue_oldest_seconds",
    "How long the oldest task that could be taken has waited.",
    () => lanes.ages(),
    lane,
  );
  metrics.sampled("gauge", "longshore_claims_waiting", "Claims that wait for work.", () => board.waiting);
  metrics.sampled("gauge", "longshore_workers", "Workers by status.", () => workersByStatus(workers), ["status"]);
  metrics.sampled("gauge", "longshore_runs_open", "Runs that have not ended.", () => engine.openRuns());
  metrics.sampled("gauge", "longshore_schedules", "Schedules, paused ones included.", () => engine.scheduleCount());
  metrics.sampled("gauge", "longshore_log_followers", "Readers that follow a log.", () => logs.following);
  metrics.sampled("counter", "longshore_commit_operations_total", "Operations in these transactions.", () => storage.operations);
  metrics.sampled("gauge", "longshore_store_writable", "1 when the last write succeeded.", () => (storage.unavailable === null ? 1 : 0));
  storedBytes(engine, metrics);
  const size = new StoreSize(() => engine.size());
  metrics.before(() => size.look());
  metrics.sampled("gauge", "longshore_data_bytes", "Size of the data file and its log, or of the tables.", () => size.samples(), ["part"]);
  processFigures(metrics);
}

function storedBytes({ storage }: Pick<Engine, "storage">, metrics: Metrics): void {
  const each = (figure: (room: Room) => number) => () => [...storage.rooms()].map((room) => sample(room.kind, figure(room)));
  metrics.sampled(
    "gauge",
    "longshore_stored_bytes",
    "Bytes stored, by kind.",
    each(({ used }) => used),
    ["kind"],
  );
  metrics.sampled(
    "gauge",
    "longshore_stored_bytes_max",
    "The quota of each kind.",
    each(({ max }) => max),
    ["kind"],
  );
  const refused = "Data that was refused, or stored without its texts, because its kind has reached its quota.";
  metrics.sampled(
    "counter",
    "longshore_stored_refused_total",
    refused,
    each((room) => room.refused),
    ["kind"],
  );
}

function endings(engine: Pick<Engine, "listen">, metrics: Metrics): void {
  const tasks = metrics.counter("longshore_tasks_ended_total", "Tasks that ended, by outcome.", ["state"]);
  const runs = metrics.counter("longshore_runs_ended_total", "Runs that ended, by outcome.", ["state"]);
  const byTaskState = new Map(["done", "failed", "cancelled", "skipped"].map((state) => [state, tasks.with(state)]));
  const byRunState = new Map(["succeeded", "failed", "cancelled", "timed-out"].map((state) => [state, runs.with(state)]));
  engine.listen({
    task: (task) => byTaskState.get(task.state)?.add(),
    run: (run) => byRunState.get(run.state)?.add(),
  });
}

function workersByStatus(workers: Workers): Sample[] {
  const counts = workers.countByStatus();
  return workerStatuses.map((status) => sample(status, counts[status]));
}

function sample(label: string, value: number): Sample {
  return { labels: [label], value };
}

/** The usual names of process metrics, which dashboards know. */
function processFigures(metrics: Metrics): void {
  metrics.sampled("gauge", "process_resident_memory_bytes", "Memory in use.", () => process.memoryUsage.rss());
  metrics.sampled("gauge", "process_start_time_seconds", "When this process started.", () => performance.timeOrigin / 1_000);
  metrics.sampled("counter", "process_cpu_seconds_total", "CPU time used.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000_000;
  });
}
