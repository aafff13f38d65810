// `longshore runs`: what ran and what runs.

import { Command, Option } from "commander";
import { formatDuration } from "../duration.ts";
import { counted } from "../text.ts";
import type { Page, Run } from "./api.ts";
import { connect } from "./client.ts";
import { type ConnectionOptions, parseCount, withConnection, withExamples, withJson } from "./options.ts";
import { runStyles, titleOf } from "./run-view.ts";
import { fit, type Paint, painter, table } from "./terminal.ts";

interface RunsFlags extends ConnectionOptions {
  workflow?: string;
  state?: Run["state"];
  limit: number;
  before?: string;
  json?: boolean;
}

const errorCharsMax = 60;

export function runsCommand(): Command {
  const command = new Command("runs").description("list runs, newest first");
  withJson(withConnection(command))
    .option("--workflow <name>", "only runs of this workflow")
    .addOption(new Option("--state <state>", "only runs in this state").choices(Object.keys(runStyles)))
    .option("--limit <number>", "how many at most", parseCount, 20)
    .option("--before <run>", "go on after this one")
    .action(runs);
  return withExamples(command, [
    ["longshore runs --state failed", "what went wrong lately"],
    ["longshore runs --workflow ci --limit 1 --json", "the newest run, for a program"],
  ]);
}

async function runs({ workflow, state, limit, before, json, ...flags }: RunsFlags): Promise<void> {
  const page = await connect(flags).get<Page<Run>>("/runs", { workflow, state, limit, before });
  if (json) {
    process.stdout.write(`${JSON.stringify(page)}\n`);
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
  const left = run.state === "running" ? `${counted(run.left, "step")} left` : fit(run.error ?? "", errorCharsMax);
  return [
    run.id,
    titleOf(run),
    paint(runStyles[run.state], run.state),
    new Date(run.createdAt).toISOString().replace("T", " ").slice(0, 19),
    took,
    left,
  ];
}
