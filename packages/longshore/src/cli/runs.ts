// `longshore runs`: lists runs, or shows the state of one run.

import { Command, Option } from "commander";
import { formatDuration } from "../core/duration.ts";
import { counted } from "../core/text.ts";
import { isRunOpen } from "../engine/run/run.ts";
import type { Page, Run } from "./api.ts";
import { connect } from "./client.ts";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, parseCount, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { renderRun, runStyles, titleOf } from "./run-view.ts";
import { fit, type Paint, painter, table } from "./terminal.ts";
import { look } from "./watch-run.ts";

interface RunsFlags extends ConnectionOptions {
  workflow?: string;
  state?: Run["state"];
  limit: number;
  before?: string;
  json?: boolean;
}

const errorCharsMax = 60;
const columnsDefault = 100;

export function runsCommand(): Command {
  const command = new Command("runs")
    .description("list runs, newest first, or show one with its steps")
    .argument("[run]", "the id of a run");
  withJson(withConnection(command))
    .option("--workflow <name>", "only runs of this workflow")
    .addOption(new Option("--state <state>", "only runs in this state").choices(Object.keys(runStyles)))
    .option("--limit <number>", "maximum number of results", parseCount, 20)
    .option("--before <run>", "continue after this run")
    .action(runs);
  return withExamples(command, [
    ["longshore runs --state failed", "the runs that failed"],
    ["longshore runs --workflow ci --limit 1 --json", "the newest run, for a program"],
    ["longshore runs 0198c0de", "its steps, why they wait, and their dead letters"],
  ]);
}

async function runs(runId: string | undefined, flags: RunsFlags): Promise<void> {
  if (runId === undefined) return list(flags);
  for (const name of ["workflow", "state", "before"] as const) {
    if (flags[name] !== undefined) throw new CommandFailure(`--${name} chooses among runs; leave it out to see the run ${runId}.`);
  }
  const { run, steps } = await look(connect(flags), runId);
  if (flags.json) {
    printJson({ ...run, steps });
    return;
  }
  const width = process.stdout.columns ?? columnsDefault;
  const lines = renderRun({ run, steps }, { now: Date.now(), width, paint: painter(process.stdout) });
  if (run.error !== null) lines.push(fit(run.error, width));
  process.stdout.write(`${lines.join("\n")}\n`);
}

async function list({ workflow, state, limit, before, json, ...flags }: RunsFlags): Promise<void> {
  const page = await connect(flags).get<Page<Run>>("/runs", { workflow, state, limit, before });
  if (json) {
    printJson(page);
    return;
  }
  const paint = painter(process.stdout);
  const lines =
    page.items.length === 0
      ? ["No runs."]
      : table(
          ["RUN", "WORKFLOW", "STATE", "STARTED", "TOOK", ""],
          page.items.map((run) => row(run, paint)),
          paint,
        );
  if (page.next !== null) lines.push(paint("dim", `There are more: --before ${page.next}`));
  process.stdout.write(`${lines.join("\n")}\n`);
}

function row(run: Run, paint: Paint): string[] {
  const took = formatDuration((run.endedAt ?? Date.now()) - run.createdAt);
  const left = isRunOpen(run.state) ? `${counted(run.left, "step")} left` : fit(run.error ?? "", errorCharsMax);
  return [
    run.id,
    titleOf(run),
    paint(runStyles[run.state], run.state),
    new Date(run.createdAt).toISOString().replace("T", " ").slice(0, 19),
    took,
    left,
  ];
}
