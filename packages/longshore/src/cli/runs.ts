// `longshore runs`: lists runs, or shows the state of one run.

import { Command, Option } from "commander";
import { formatDuration } from "../core/duration.ts";
import { counted } from "../core/text.ts";
import { isRunOpen } from "../engine/run/run.ts";
import type { Run, Step, TaskView } from "./api.ts";
import { type Client, connect } from "./client.ts";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, parseCount, parseRepeated, withConnection, withExamples, withJson } from "./options.ts";
import { readList } from "./pages.ts";
import { printJson } from "./print-json.ts";
import { runIdOf } from "./run-id.ts";
import { outputLine, valueLines } from "./run-values.ts";
import { renderRun, runStyles, titleOf, waitText } from "./run-view.ts";
import { signalLines, signalsOf } from "./signal-lines.ts";
import { columnsOf, oneLine, type Paint, painter, table } from "./terminal.ts";
import { look } from "./watch-run.ts";

/** With `--where`, lists have the beginning of an error instead of the whole error. */
type ListedRun = Omit<Run, "error"> & { readonly error?: Run["error"]; readonly firstError?: string | null };

interface RunsFlags extends ConnectionOptions {
  workflow?: string;
  state?: Run["state"];
  where?: readonly string[];
  limit: number;
  before?: string;
  json?: boolean;
}

/** A terminal with fewer columns has no room for the whole date of each run. */
const dateWidthMin = 100;
/** The limit of steps whose values are read. */
const valuesMax = 20_000;

export function runsCommand(): Command {
  const command = new Command("runs")
    .description("list runs, newest first, or show one with its steps")
    .argument("[run]", "the id of a run, or its beginning");
  withJson(withConnection(command))
    .option("--workflow <name>", "only runs of this workflow")
    .addOption(new Option("--state <state>", "only runs in this state").choices(Object.keys(runStyles)))
    .option("--where <path:value>", "only runs with this value in their data, such as input.customer.id:17; repeatable", parseRepeated)
    .option("--limit <number>", "maximum number of results", parseCount, 20)
    .option("--before <run>", "continue after this run")
    .action(runs);
  return withExamples(command, [
    ["longshore runs --state failed", "the runs that failed"],
    ["longshore runs --where input.customer:Ada", "the runs whose input has this value"],
    ["longshore runs --workflow ci --limit 1 --json", "the newest run, for a program"],
    ["longshore runs 01KA3F7Q", "its input, its steps, their outputs, and why they wait"],
  ]);
}

async function runs(given: string | undefined, flags: RunsFlags): Promise<void> {
  if (given === undefined) return list(flags);
  for (const name of ["workflow", "state", "where", "before"] as const) {
    if (flags[name] !== undefined) throw new CommandFailure(`--${name} chooses among runs; leave it out to see the run ${given}.`);
  }
  const client = connect(flags);
  const runId = await runIdOf(client, given);
  const { run, steps } = await look(client, runId);
  const values = await valuesOf(client, runId);
  const signals = await signalsOf(client, run);
  if (flags.json) {
    const whole = steps.map((step) => ({ ...step, ...values.get(step.taskId ?? "") }));
    printJson({ ...run, steps: whole, signals: { ...run.signals, items: signals } });
    return;
  }
  const width = columnsOf(process.stdout);
  const paint = painter(process.stdout);
  const below = ({ taskId, childRunId }: Step) => [
    ...(childRunId === undefined ? [] : [paint("dim", `    run ${childRunId}`)]),
    ...outputLine(values.get(taskId ?? "")?.output ?? null, width, paint),
  ];
  const now = Date.now();
  const [head = "", ...lines] = renderRun({ run, steps }, { now, width, paint, below, wholeErrors: true });
  const error = run.error === null ? [] : [paint("red", oneLine(run.error))];
  const shown = [
    head,
    ...parentLine(run, paint),
    ...valueLines("input", run.input, width, paint),
    ...lines,
    ...signalLines(signals, { steps, now, width, paint }),
    ...error,
    ...valueLines("output", run.output, width, paint),
  ];
  process.stdout.write(`${shown.join("\n")}\n`);
}

/** The run whose step has started this one. */
function parentLine({ parentTaskId }: Run, paint: Paint): string[] {
  return parentTaskId === null ? [] : [`${paint("dim", "parent")}  ${parentTaskId.slice(0, parentTaskId.lastIndexOf("."))}`];
}

/** The inputs and outputs of the steps that have begun, by their tasks. */
async function valuesOf(client: Client, runId: string): Promise<ReadonlyMap<string, Pick<TaskView, "input" | "output">>> {
  const path = `/runs/${encodeURIComponent(runId)}/tasks`;
  const { items } = await readList<TaskView>(client, { path, cursor: "after", limit: valuesMax });
  return new Map(items.map(({ id, input, output }) => [id, { input, output }]));
}

async function list({ workflow, state, where, limit, before, json, ...flags }: RunsFlags): Promise<void> {
  const query = { workflow, state, before, waiting: "true", ...(where === undefined ? {} : { view: "summary", where }) };
  const page = await readList<ListedRun>(connect(flags), { path: "/runs", query, cursor: "before", limit });
  if (json) {
    printJson(page);
    return;
  }
  const paint = painter(process.stdout);
  const width = columnsOf(process.stdout);
  const isNarrow = width < dateWidthMin;
  const headings = ["RUN", "WORKFLOW", "STATE", isNarrow ? "AGE" : "STARTED", "TOOK", ""];
  const rows = page.items.map((run) => row(run, isNarrow, paint));
  const lines = page.items.length === 0 ? ["No runs."] : table(headings, rows, paint, width);
  if (page.next !== null) lines.push(paint("dim", `There are more: --before ${page.next}`));
  process.stdout.write(`${lines.join("\n")}\n`);
}

function row(run: ListedRun, isNarrow: boolean, paint: Paint): string[] {
  const now = Date.now();
  const took = formatDuration((run.endedAt ?? now) - run.createdAt);
  const awaits = waitText(run, now);
  const open = awaits === undefined ? `${counted(run.left, "step")} left` : oneLine(awaits);
  const left = isRunOpen(run.state) && run.state !== "blocked" ? open : oneLine(run.error ?? run.firstError ?? "");
  const started = isNarrow ? ageOf(now - run.createdAt) : new Date(run.createdAt).toISOString().replace("T", " ").slice(0, 19);
  return [run.id, titleOf(run), stateWord(run, paint), started, took, left];
}

/** A run that waits for a signal or a time is `running`, and people need to see that no worker has it. */
function stateWord({ state, startAt, waiting }: ListedRun, paint: Paint): string {
  if (state !== "running") return paint(runStyles[state], state);
  if (waiting?.reason === "signal" || waiting?.reason === "turn") return paint("yellow", "waiting");
  return startAt !== null || waiting?.reason === "sleeping" ? paint("dim", "sleeping") : paint(runStyles.running, "running");
}

/** One number and one unit: `12 s`, `3 m`, `5 h`, `9 d`. */
function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} m`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}
