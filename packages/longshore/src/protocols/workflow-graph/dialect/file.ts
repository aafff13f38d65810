// Definition files, YAML or JSON:
//
//   name: CI
//   on: push
//   env: { REGION: eu }
//   jobs:
//     test: { run: npm test, retries: 2, labels: [linux] }
//     deploy:
//       needs: test
//       timeout: 600
//       steps:
//         - { name: Migrate, run: ./migrate.sh }
//         - { name: Release, run: ./release.sh }
//
// The full list of keys is in README.md beside the protocol ("Definition files"). A wrong value is refused, and an unknown key causes a
// warning; both with line and column.

import { debounceOf } from "../../../core/debounce.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { EventTrigger } from "../../../core/event-trigger.ts";
import { fields, integer, listOf, mapOf, required, textOf, whole } from "../../../core/file-fields.ts";
import { fileId, type Place, type ReadFile, readFile, type Warning } from "../../../core/file-place.ts";
import { startLimitOf } from "../../../core/start-limit.ts";
import type { DeclaredSchedule } from "../../../engine/schedule/store.ts";
import { readCommand } from "../wire/command.ts";
import type { WireBackoff } from "../wire/shapes.ts";
import { checkCommands, checkGraph, type Refuse } from "./check.ts";
import { type EnvVar, isEnvName, runCommand, type ShellStep, stepsCommand } from "./command.ts";
import { eventsOf } from "./file-events.ts";
import { schedulesOf, warnOfBareSchedule } from "./file-schedules.ts";
import { encodeSource, type GraphJob, type GraphSource, maxLostLeasesDefault, plainJob } from "./source.ts";

export interface ParsedFile {
  /** The workflow's name on the wire: the file's name without folder and extension, else the definition's own name. */
  id: string;
  graph: GraphSource;
  source: string;
  schedules: DeclaredSchedule[];
  events: EventTrigger[];
  warnings: Warning[];
}

/** Throws LONGSHORE_BAD_DEFINITION with field, expected, line and column. A file that ends in `.json` must be JSON. */
export function parseFile(text: string, options: { file?: string } = {}): ParsedFile {
  return parseGraph(readFile(text, { json: options.file?.endsWith(".json") ?? false, code: "LONGSHORE_BAD_DEFINITION" }), options.file);
}

export function parseGraph({ root, warnings }: ReadFile, file?: string): ParsedFile {
  if (root.kind !== "map") throw root.refuse("A definition is a map.", "a map with name, on and jobs");
  const top = fields(root, ["name", "on", "env", "limit", "debounce", "jobs"]);
  const name = textOf(required(root, top, "name"), "a text");
  const on = required(root, top, "on");
  const trigger = triggerOf(on);
  const env = envOf(top.get("env"));
  const places: Place[] = [];
  const dependencies: Place[][] = [];
  const id = fileId(file) ?? name;
  const limit = checkedAt(top.get("limit"), (given) => startLimitOf(given, id));
  const debounce = checkedAt(top.get("debounce"), (given) => debounceOf(given, id));
  const graph: GraphSource = { name, trigger, jobs: [], ...(limit && { limit }), ...(debounce && { debounce }) };
  for (const { key, at, value } of mapOf(required(root, top, "jobs"), "a map of jobs").entries()) {
    const { job, needs } = jobOf(key, at, value, env);
    graph.jobs.push(job);
    places.push(at);
    dependencies.push(needs);
  }
  const placed: Refuse = (path, message, expected) => whereOf(path, root, places, dependencies).refuse(message, expected);
  checkGraph(graph, { job: (at) => ["jobs", at], dependency: (at, place) => ["jobs", at, place] }, placed);
  checkCommands(graph, { job: (at) => ["jobs", at] }, placed);
  return { id, graph, source: encodeSource(graph), schedules: schedulesOf(on, id), events: eventsOf(on, id), warnings };
}

/** A part of the definition that workflows in code have, too. */
function checkedAt<T>(place: Place | undefined, check: (given: unknown) => T): T | undefined {
  if (place === undefined) return undefined;
  try {
    return check(place.kind === "map" ? place.json() : place.text);
  } catch (error) {
    throw error instanceof LongshoreError ? place.refuse(error.message, error.detail.expected ?? "a map") : error;
  }
}

/** Maps job numbers of `checkGraph` to places in the file, which names jobs. */
function whereOf(
  path: readonly (string | number)[],
  root: Place,
  jobs: readonly Place[],
  dependencies: readonly (readonly Place[])[],
): Place {
  const [, job, dependency] = path;
  if (typeof job !== "number") return root;
  return (typeof dependency === "number" ? dependencies[job]?.[dependency] : jobs[job]) ?? root;
}

const jobKeys = ["name", "needs", "run", "steps", "env", "labels", "retries", "timeout", "if", "backoff", "max_lost_leases", "priority"];

function jobOf(id: string, at: Place, place: Place, globalEnv: readonly EnvVar[]): { job: GraphJob; needs: Place[] } {
  if (place.kind !== "map") throw place.refuse(`Job '${id}' is not a map.`, "a map with run or steps");
  const given = fields(place, jobKeys);
  const env = [...globalEnv, ...envOf(given.get("env"))];
  const needs = needsOf(given.get("needs"));
  const job: GraphJob = {
    ...plainJob(id, commandOf(at, given, env)),
    depends_on: needs.map((need) => need.text),
    required_labels: labelsOf(given.get("labels")),
    max_retries: whole(given.get("retries"), 0),
    max_lost_leases: whole(given.get("max_lost_leases"), maxLostLeasesDefault),
    backoff: backoffOf(given.get("backoff")),
    timeout_secs: given.has("timeout") ? whole(given.get("timeout"), 0) : null,
    priority: integer(given.get("priority")),
    skip: isOff(given.get("if")),
  };
  const name = given.get("name");
  return { job: name === undefined ? job : { ...job, name: textOf(name, "a text") }, needs };
}

function commandOf(at: Place, given: ReadonlyMap<string, Place>, env: readonly EnvVar[]): string {
  const run = given.get("run");
  const steps = given.get("steps");
  const items = steps === undefined ? [] : listOf(steps, "a list of steps");
  if (items.length === 0 && run === undefined) throw at.refuse("Job must have either 'run' or 'steps'", "run: a command, or steps: a list");
  if (items.length === 0) return ownCommand(run as Place, env);
  run?.warn("`run` is not used, because the job has steps.");
  const commands: ShellStep[] = [];
  items.forEach((item, index) => {
    const step = stepOf(item, index);
    if (step !== null) commands.push(step);
  });
  return stepsCommand(env, commands);
}

/**
 * An environment applies only to shell commands. The call of a handler stays unchanged, because otherwise it would become a shell command.
 */
function ownCommand(run: Place, env: readonly EnvVar[]): string {
  const text = textOf(run, "a command");
  if (env.length === 0 || readCommand(text).kind === "shell") return runCommand(env, text);
  run.warn("The command is the call of a handler, which gets no environment: `env` is for shell commands.");
  return text.trim();
}

/** Null for a step that does nothing: it has no command, or `if: false`. */
function stepOf(place: Place, index: number): ShellStep | null {
  if (place.kind !== "map") throw place.refuse("A step is a map.", "a map with run");
  const given = fields(place, ["id", "name", "run", "if", "env"]);
  const off = isOff(given.get("if"));
  const env = envOf(given.get("env"));
  const named = given.get("name") ?? given.get("id");
  const label = named === undefined ? `step ${index + 1}` : textOf(named, "a text");
  const run = given.get("run");
  if (run === undefined) place.warn("A step without `run` does nothing.");
  if (run === undefined) return null;
  const text = textOf(run, "a command");
  if (readCommand(text).kind !== "shell")
    throw run.refuse("A step cannot call a handler.", "a shell command; or a job of its own, with `run`");
  return off ? null : { label, env, run: text };
}

function triggerOf(place: Place): string {
  for (const one of place.kind === "list" ? place.items() : [place]) warnOfBareSchedule(one);
  if (place.kind === "text") return `on: ${place.text}`;
  if (place.kind === "list")
    return `on: [${place
      .items()
      .map((item) => textOf(item, "a text"))
      .join(", ")}]`;
  if (place.kind !== "map") throw place.refuse("`on` defines when the workflow runs.", "a text, a list of texts or a map");
  return `on: [${place
    .entries()
    .map(({ key }) => key)
    .join(", ")}]`;
}

function needsOf(place: Place | undefined): Place[] {
  if (place === undefined || place.kind === "null") return [];
  const needs = place.kind === "list" ? place.items() : [place];
  for (const need of needs) textOf(need, "a job id, or a list of job ids");
  return needs;
}

function labelsOf(place: Place | undefined): string[] {
  return place === undefined ? [] : listOf(place, "a list of labels, such as [linux, gpu]").map((item) => textOf(item, "a label"));
}

function envOf(place: Place | undefined): EnvVar[] {
  if (place === undefined || place.kind === "null") return [];
  return mapOf(place, "a map of variables")
    .entries()
    .map(({ key, at, value }) => {
      if (!isEnvName(key)) throw at.refuse(`'${key}' cannot be the name of a variable.`, "letters, digits and _, not a digit first");
      if (value.kind === "map" || value.kind === "list") throw value.refuse(`The variable ${key} has no single value.`, "a text");
      return { name: key, value: value.kind === "null" ? "" : value.text };
    });
}

/** `none`, seconds between tries, or `{base, max}` seconds for a wait that doubles. */
function backoffOf(place: Place | undefined): WireBackoff {
  if (place === undefined || place.kind === "null" || (place.kind === "text" && place.text === "none")) return "None";
  if (place.kind === "number") return { Fixed: { delay_secs: whole(place, 0) } };
  if (place.kind !== "map") throw place.refuse("`backoff` is the wait between tries.", "none, a number of seconds, or {base: 2, max: 60}");
  const given = fields(place, ["base", "max"]);
  const base = whole(required(place, given, "base"), 0);
  return { Exponential: { base_secs: base, max_secs: whole(required(place, given, "max"), 0) } };
}

/** Conditions are not evaluated: only a plain `false` means never, and any other one gets a warning. */
function isOff(place: Place | undefined): boolean {
  if (place === undefined || place.kind === "null") return false;
  const word = place.text.trim();
  if (word === "false" || word === "true") return word === "false";
  place.warn(`The condition is not evaluated, so this always runs: ${JSON.stringify(word)}. Only true and false are understood.`);
  return false;
}
