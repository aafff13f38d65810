// Checks for every workflow-graph definition, from any source. An error names the field as a path, so that a caller with the text can add
// line and column.

import { LongshoreError } from "../../../core/errors.ts";
import { type JsonPath, pathText } from "../../../core/json/json-position.ts";
import { atOnce, eachInSlices, mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { findCycle } from "../../../engine/run/make-plan.ts";
import { nodesMax } from "../../../engine/run/plan.ts";
import { readCommand } from "../wire/command.ts";
import type { GraphJob, GraphSource } from "./source.ts";

/** Ids are used in URLs and keys. */
const idCharsMax = 256;
const nameCharsMax = 1_000;
/** Maximum length of a command: one megabyte of shell is a mistake, and larger files are refused anyway. */
const commandCharsMax = 1_000_000;
const labelsMax = 64;
const labelCharsMax = 256;
/** Maximum number of retries and of lost leases: more would be an endless loop. */
const budgetMax = 1_000;
const timeoutSecsMax = 30 * 86_400;
const priorityMax = 1_000_000;

/** Creates the error that refuses the value at `path`. */
export type Refuse = (path: JsonPath, message: string, expected: string) => Error;

/** The default error, for definitions whose text is not available. */
export const refuse: Refuse = (path, message, expected) =>
  new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field: pathText(path), expected } });

/** The position of a job and of its dependencies, in the author's text. */
export interface Layout {
  job(index: number): JsonPath;
  dependency(index: number, at: number): JsonPath;
}

/** Throws the first fault. */
export function checkGraph(graph: GraphSource, layout: Layout, refuse: Refuse): void {
  atOnce(checkInSlices(graph, layout, refuse));
}

export function* checkInSlices(graph: GraphSource, layout: Layout, refuse: Refuse): Sliced<void> {
  if (graph.jobs.length > nodesMax) throw refuse(["jobs"], `There are ${graph.jobs.length} jobs.`, `at most ${nodesMax}`);
  if (graph.name.length > nameCharsMax) throw refuse(["name"], "The name is too long.", `at most ${nameCharsMax} characters`);
  const index = new Map<string, number>();
  yield* eachInSlices(graph.jobs, (job, at) => {
    checkJob(job, (message, expected) => refuse(layout.job(at), message, expected));
    if (index.has(job.id)) throw refuse(layout.job(at), `Two jobs have the id '${job.id}'.`, "an id that no other job has");
    index.set(job.id, at);
  });
  const nodes = yield* mapInSlices(graph.jobs, (job, at) => ({
    id: job.id,
    after: job.depends_on.map((dependency, place) => {
      const found = index.get(dependency);
      if (found !== undefined) return found;
      throw refuse(
        layout.dependency(at, place),
        `Job '${job.id}' depends on '${dependency}', which doesn't exist`,
        "the id of a job of this workflow",
      );
    }),
  }));
  const cycle = findCycle(nodes);
  if (cycle === null) return;
  const message =
    cycle.length === 2
      ? `Job '${cycle[0]}' depends on itself`
      : `These jobs wait for each other: ${cycle.map((id) => `'${id}'`).join(" -> ")}`;
  throw refuse(layout.job(index.get(cycle[0] as string) as number), message, "dependencies without a cycle");
}

/** For new definitions: a command that starts like the call of a handler must be a valid call. Otherwise no worker could run it. */
export function checkCommands(graph: GraphSource, layout: Pick<Layout, "job">, refuse: Refuse): void {
  graph.jobs.forEach((job, at) => {
    const command = readCommand(job.command);
    if (command.kind !== "broken") return;
    throw refuse(layout.job(at), `Job '${job.id}': ${command.why}`, 'a shell command, @name {"input":"as JSON"}, or {"handler":"name"}');
  });
}

function checkJob(job: GraphJob, refuse: (message: string, expected: string) => Error): void {
  if (job.id === "" || job.id.length > idCharsMax) throw refuse(`A job's id has ${job.id.length} characters.`, `1 to ${idCharsMax}`);
  if (hasControl(job.id))
    throw refuse(`The id of job ${JSON.stringify(job.id)} has a control character.`, "an id without control characters");
  const where = `Job '${job.id}'`;
  if (job.name.length > nameCharsMax) throw refuse(`${where} has a name of ${job.name.length} characters.`, `at most ${nameCharsMax}`);
  if (job.command.length > commandCharsMax)
    throw refuse(`${where} has a command of ${job.command.length} characters.`, `at most ${commandCharsMax}`);
  if (job.required_labels.length > labelsMax)
    throw refuse(`${where} requires ${job.required_labels.length} labels.`, `at most ${labelsMax}`);
  for (const label of job.required_labels) {
    if (label.length > labelCharsMax) throw refuse(`${where} requires a label of ${label.length} characters.`, `at most ${labelCharsMax}`);
  }
  if (job.max_retries > budgetMax) throw refuse(`${where} has ${job.max_retries} retries.`, `at most ${budgetMax}`);
  if (job.max_lost_leases > budgetMax) throw refuse(`${where} has max_lost_leases ${job.max_lost_leases}.`, `at most ${budgetMax}`);
  if (job.timeout_secs !== null && (job.timeout_secs < 1 || job.timeout_secs > timeoutSecsMax)) {
    throw refuse(`${where} has a timeout of ${job.timeout_secs} s.`, `1 to ${timeoutSecsMax}`);
  }
  if (Math.abs(job.priority) > priorityMax)
    throw refuse(`${where} has priority ${job.priority}.`, `from -${priorityMax} to ${priorityMax}`);
}

function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}
