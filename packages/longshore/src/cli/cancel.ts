// `longshore cancel`: cancels one run, or all open runs that filters choose.

import { Command, Option } from "commander";
import { counted } from "../core/text.ts";
import type { BulkJob, Run } from "./api.ts";
import { type Client, connect, type Query } from "./client.ts";
import { CommandFailure, warn } from "./failure.ts";
import { parseRepeated, type RecordOptions, withExamples, withJson, withRecord } from "./options.ts";
import { readList } from "./pages.ts";
import { printJson } from "./print-json.ts";
import { recordRun } from "./record.ts";
import { runIdOf } from "./run-id.ts";
import { oneLine, printable } from "./terminal.ts";

/** How long one request waits for the end of an order to many runs. */
const jobWaitMs = 20_000;

/** The states in which a run can be cancelled. */
const openStates = ["running", "paused", "blocked"] as const;

interface Filters {
  readonly workflow?: string;
  readonly state?: (typeof openStates)[number];
  readonly where?: readonly string[];
}

interface CancelFlags extends RecordOptions, Filters {
  json?: boolean;
  reason?: string;
  dryRun?: boolean;
}

export function cancelCommand(): Command {
  const command = new Command("cancel")
    .description("cancel a run, or all open runs that filters choose; a run that has ended does not change")
    .argument("[run]", "its id, or the beginning of it");
  withJson(withRecord(command))
    .option("--reason <text>", "the reason; stored and shown with the run")
    .option("--workflow <name>", "all open runs of this workflow")
    .addOption(new Option("--state <state>", "all runs in this state").choices(openStates))
    .option("--where <path:value>", "all open runs with this value in their data, such as input.customer.id:17; repeatable", parseRepeated)
    .option("--dry-run", "only print which runs the filters choose")
    .action(cancel);
  return withExamples(command, [
    ["longshore cancel 01KA3F7Q", "its workers are notified with their next heartbeat"],
    ['longshore cancel 01KA3F7Q --reason "wrong input"', "the run shows this reason"],
    ["longshore cancel --workflow nightly --state blocked --dry-run", "the runs that it would cancel"],
    ["longshore cancel --where input.customer:Ada", "all open runs for one customer"],
  ]);
}

async function cancel(given: string | undefined, { workflow, state, where, dryRun = false, ...flags }: CancelFlags): Promise<void> {
  const hasFilter = workflow !== undefined || state !== undefined || where !== undefined;
  if (given !== undefined && (hasFilter || dryRun))
    throw new CommandFailure(`filters choose runs; leave them out to cancel the run ${given}, or leave out the run.`);
  if (given === undefined && !hasFilter)
    throw new CommandFailure("cancel needs the id of a run, or at least one of --workflow, --state and --where.");
  const client = connect(flags);
  if (given === undefined) return cancelAll(client, { workflow, state, where }, { ...flags, dryRun });
  const run = await cancelRun(client, await runIdOf(client, given), flags);
  const { reason, json = false } = flags;
  const why = reason === undefined || run.error === null ? "" : `: ${oneLine(run.error)}`;
  if (json) printJson(run);
  else process.stdout.write(`${printable(`${run.id} ${run.state}${why}`)}\n`);
  if (reason !== undefined && run.error !== reason) warn("the run had ended before, so the reason was not kept.", json);
}

async function cancelRun(client: Client, id: string, { reason, record }: Pick<CancelFlags, "reason" | "record">): Promise<Run> {
  const run = await client.post<Run>(`/runs/${encodeURIComponent(id)}/cancel`, reason === undefined ? undefined : { reason });
  recordRun(record, "run-ordered", run);
  return run;
}

/** The server carries out the order, so it continues when this command is interrupted. */
async function cancelAll(client: Client, { workflow, state, where }: Filters, flags: CancelFlags): Promise<void> {
  const { dryRun = false, json = false, reason, record } = flags;
  if (record !== undefined) throw new CommandFailure("--record needs the id of one run: leave it out, or give a run instead of filters.");
  const filter = { ...(workflow && { workflow }), state: state ?? openStates.join(","), ...(where && { where }) };
  if (dryRun) return printChosen(client, filter, json);
  const body = { action: "cancel", filter, ...(reason === undefined ? {} : { reason }) };
  let job = await client.post<BulkJob>("/bulk", body, { query: { waitMs: jobWaitMs } });
  while (job.state === "running") job = await client.get<BulkJob>(`/bulk/${job.id}`, { waitMs: jobWaitMs });
  if (json) return printJson(job);
  for (const { run, error } of job.errors) warn(`${run} was not cancelled: ${oneLine(error)}`, json);
  process.stdout.write(`${counted(job.done, "run")} cancelled${job.state === "stopped" ? ", then the order was stopped" : ""}\n`);
}

async function printChosen(client: Client, filter: Query, json: boolean): Promise<void> {
  const query = { ...filter, view: "summary" };
  const { items } = await readList<Pick<Run, "id" | "workflow" | "state">>(client, { path: "/runs", query, cursor: "before" });
  if (json) return printJson({ items: items.map(({ id, workflow, state }) => ({ id, workflow, state })), next: null });
  for (const run of items) process.stdout.write(`${printable(`${run.id} ${run.workflow} ${run.state}`)}\n`);
  process.stdout.write(`${counted(items.length, "run")} would be cancelled\n`);
}
