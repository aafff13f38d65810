// Conductor's scheduler on the schedules of this server: README.md, "Schedules".

import type { Clock } from "../../../core/clock.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { wholeRow } from "../../../core/slices/slices.ts";
import { sortInSlices } from "../../../core/slices/sort-slices.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import { type Schedule, type ScheduledRun, type Tick, tickKey } from "../../../engine/schedule/schedule.ts";
import type { ScheduleStore } from "../../../engine/schedule/store.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { parseQuery, satisfies } from "./query.ts";
import type { Registry } from "./registry.ts";
import { badRequest, hits, invalid, json, jsonText, notFound, nothing, refusedByCore } from "./replies.ts";
import { bodyOf, flagInQuery, neededInQuery, objectOf, textInQuery, wholeIn } from "./request.ts";
import { type GivenSchedule, givenSchedule, noReason, shownSchedule } from "./schedule-body.ts";
import { fromSpring } from "./spring-cron.ts";
import { type Starter, startIn } from "./start.ts";

export interface SchedulerDeps {
  readonly clock: Clock;
  readonly reader: Reader;
  readonly schedules: ScheduleStore;
  readonly registry: Registry;
  readonly starter: Starter;
}

/** Schedules in one read, and maximum number of results in one answer. */
const readMax = 100;
const sizeMax = 1_000;
/** Maximum number of names in one request for several schedules. */
const namesMax = 1_000;
/** The real server shows at most five times. */
const timesMax = 5;
/** Fields of the input that tell a run about its tick. */
const tickFields = { tick: "_scheduledTime", startedAt: "_executedTime", runId: "_executionId" } as const;

export class Scheduler {
  readonly #deps: SchedulerDeps;

  constructor(deps: SchedulerDeps) {
    this.#deps = deps;
    deps.schedules.renewsRuns((row, run) => this.#renewed(row, run));
  }

  put = async (request: HttpRequest): Promise<HttpReply> => {
    const given = givenSchedule(objectOf(request, "the schedule"));
    const { schedules } = this.#deps;
    const made = await this.#runOf(given);
    const rules = { workflow: made.workflow, overlap: "allow", catchUp: given.catchesUp ? "all" : "last" };
    const { schedule } = await schedules.put({ name: given.name, rules, input: made.input, own: { when: given.when, run: made.run } });
    return json(shownSchedule(await this.#paused(schedule, given.paused)));
  };

  async #paused(schedule: Schedule, reason: string | undefined): Promise<Schedule> {
    const { schedules } = this.#deps;
    const { name, paused } = schedule;
    if (reason === undefined) return (paused === null ? schedule : await schedules.resume(name)) ?? schedule;
    return (paused === reason ? schedule : await schedules.pause(name, reason)) ?? schedule;
  }

  /** What each run gets: the same as a run that this request starts at once. */
  async #runOf({ name, request, when, note }: Pick<GivenSchedule, "name" | "request" | "when" | "note">) {
    const told = { _startedByScheduler: name, _schedulerCron: when.crons.map(({ cron, timezone }) => `${cron} ${timezone}`).join(", ") };
    const start = await startIn(
      { ...request, input: { ...(request.input as JsonObject | undefined), ...told } },
      undefined,
      "startWorkflowRequest",
    );
    const { workflow, input, definitionId, alias, priority, settings, variables } = await this.#deps.starter.made({
      ...start,
      idempotencyKey: undefined,
    });
    const run: ScheduledRun = { definitionId, alias, priority, settings, variables, fields: tickFields, note };
    return { workflow, input, run };
  }

  /** The workflow or its tasks may have changed since the schedule was stored. */
  async #renewed({ name, when }: Schedule, { note }: ScheduledRun): Promise<ScheduledRun | undefined> {
    if (when.kind !== "crons") return undefined;
    const { startWorkflowRequest: request } = parseExact(note) as { startWorkflowRequest: JsonObject };
    try {
      return (await this.#runOf({ name, request, when, note })).run;
    } catch (error) {
      // The tick starts with what it had, or fails with the reason.
      if (refusedByCore(error) === undefined) throw error;
      return undefined;
    }
  }

  get = async (request: HttpRequest): Promise<HttpReply> => json(shownSchedule(await this.#known(request.params.name as string)));

  remove = async (request: HttpRequest): Promise<HttpReply> => {
    await this.#deps.schedules.remove(request.params.name as string);
    return nothing;
  };

  list = async (request: HttpRequest): Promise<HttpReply> => {
    const workflow = textInQuery(request, "workflowName");
    const texts = async function* (all: AsyncIterable<Schedule>) {
      for await (const row of all) yield writeExact(shownSchedule(row));
    };
    return jsonText(await this.#deps.reader.listBody(() => texts(this.#all(workflow))));
  };

  search = async (request: HttpRequest): Promise<HttpReply> => {
    const { start, size } = pageIn(request);
    const name = textInQuery(request, "scheduleName");
    const paused = request.query.get("paused") ? flagInQuery(request, "paused", false) : undefined;
    const found: string[] = [];
    let total = 0;
    for await (const row of this.#all(textInQuery(request, "workflowName"))) {
      if (name !== undefined && !row.name.includes(name)) continue;
      if (paused !== undefined && (row.paused !== null) !== paused) continue;
      if (total >= start && total < start + size) found.push(row.name);
      total++;
    }
    return this.#page(total, found, (each) => each, shownSchedule);
  };

  /** The starts that schedules remember, newest first. */
  executions = async (request: HttpRequest): Promise<HttpReply> => {
    const { start, size } = pageIn(request);
    const conditions = parseQuery(textInQuery(request, "query"));
    const text = textInQuery(request, "freeText");
    const found: Start[] = [];
    for await (const row of this.#all()) {
      if (text !== undefined && text !== "*" && !row.name.includes(text) && !row.workflow.includes(text)) continue;
      for (const tick of row.history) {
        if (tick.outcome !== "started" && tick.outcome !== "present" && tick.outcome !== "failed") continue;
        const fields = fieldsOf(row, tick);
        if (conditions.every((one) => !Object.hasOwn(fields, one.field) || satisfies(one, fields[one.field])))
          found.push({ name: row.name, tick });
      }
    }
    const turns = { turn: (rows: number) => this.#deps.reader.turn(rows / wholeRow) };
    const sorted = await sortInSlices(found, (one, other) => other.tick.at - one.tick.at, turns);
    const page = sorted.slice(start, start + size);
    return this.#page(
      found.length,
      page,
      ({ name }) => name,
      (row, { tick }) => startBody(row, tick),
    );
  };

  /** Reads the schedules again, one by one: all rows of a page together may have hundreds of megabytes. */
  async #page<Found>(
    total: number,
    found: readonly Found[],
    nameOf: (found: Found) => string,
    show: (row: Schedule, found: Found) => JsonObject,
  ): Promise<HttpReply> {
    const { schedules } = this.#deps;
    const texts = async function* () {
      for (const each of found) {
        const row = await schedules.get(nameOf(each));
        if (row !== undefined) yield writeExact(show(row, each));
      }
    };
    return jsonText(await this.#deps.reader.listBody(texts, { cut: true, around: hits(total) }));
  }

  times = async (request: HttpRequest): Promise<HttpReply> => {
    const cron = fromSpring(neededInQuery(request, "cronExpression"), "cronExpression");
    const { clock, schedules } = this.#deps;
    // The time of the start may be the first one.
    const after = wholeIn(request, "scheduleStartTime", clock.now() + 1) - 1;
    const until = wholeIn(request, "scheduleEndTime", 0) || null;
    const max = Math.min(Math.max(wholeIn(request, "limit", timesMax), 0), timesMax);
    return json(await schedules.preview({ kind: "crons", crons: [{ cron, timezone: "UTC" }], from: null, until }, after, max));
  };

  pause = async (request: HttpRequest): Promise<HttpReply> => {
    await this.#pause(request.params.name as string, textInQuery(request, "reason"));
    return nothing;
  };

  resume = async (request: HttpRequest): Promise<HttpReply> => {
    await this.#resume(request.params.name as string);
    return nothing;
  };

  pauseAll = (request: HttpRequest) => each(request, "pauseSchedules.arg0", (name) => this.#pause(name, undefined));

  resumeAll = (request: HttpRequest) => each(request, "resumeSchedules.arg0", (name) => this.#resume(name));

  async #pause(name: string, reason: string = noReason): Promise<void> {
    if ((await this.#deps.schedules.pause(name, reason)) === undefined) throw noSchedule(name);
  }

  /** As on the real server: a schedule that is not paused is not found. */
  async #resume(name: string): Promise<void> {
    if ((await this.#known(name)).paused === null) throw noSchedule(name);
    await this.#deps.schedules.resume(name);
  }

  async #known(name: string): Promise<Schedule> {
    const row = await this.#deps.schedules.get(name);
    if (row === undefined) throw noSchedule(name);
    return row;
  }

  async *#all(workflow?: string): AsyncGenerator<Schedule, void, void> {
    let after: string | undefined;
    do {
      const page = await this.#deps.schedules.list({
        limit: readMax,
        ...(after === undefined ? {} : { after }),
        ...(workflow === undefined ? {} : { workflow }),
      });
      yield* page.items;
      after = page.next ?? undefined;
    } while (after !== undefined);
  }
}

interface Start {
  readonly name: string;
  readonly tick: Tick;
}

function startBody(row: Schedule, tick: Tick): JsonObject {
  const { startWorkflowRequest, zoneId } = shownSchedule(row);
  return { ...fieldsOf(row, tick), ...(tick.reason === null ? {} : { reason: tick.reason }), startWorkflowRequest, zoneId } as JsonObject;
}

function fieldsOf({ name, workflow }: Schedule, { at, decidedAt, runId, outcome }: Tick): { [field: string]: string | number } {
  return {
    executionId: runId ?? tickKey(name, at),
    scheduleName: name,
    scheduledTime: at,
    executionTime: decidedAt,
    workflowName: workflow,
    ...(runId === null ? {} : { workflowId: runId }),
    state: outcome === "failed" ? "FAILED" : "EXECUTED",
  };
}

function noSchedule(name: string) {
  return notFound(`Schedule '${name}' not found`);
}

function pageIn(request: HttpRequest): { start: number; size: number } {
  const start = wholeIn(request, "start", 0);
  const size = wholeIn(request, "size", 100);
  if (start < 0) throw badRequest(`start is ${start}, expected a number from 0.`);
  if (size < 0 || size > sizeMax) throw badRequest(`size is ${size}, expected a number from 0 to ${sizeMax}.`);
  return { start, size };
}

/** The order succeeds or fails for each schedule separately. */
async function each(request: HttpRequest, path: string, order: (name: string) => Promise<void>): Promise<HttpReply> {
  const body = bodyOf(request);
  if (!Array.isArray(body) || body.length === 0) throw invalid([{ path, message: "Schedule names list cannot be null." }]);
  if (body.length > namesMax)
    throw invalid([{ path, message: `Cannot process more than ${namesMax} schedules. Please use multiple requests.` }]);
  const failed = new Map<string, string>();
  const done: string[] = [];
  for (const name of body.map(String)) {
    try {
      await order(name);
      done.push(name);
    } catch (error) {
      const refused = refusedByCore(error);
      if (refused === undefined) throw error;
      failed.set(name, refused.message);
    }
  }
  return json({ bulkErrorResults: Object.fromEntries(failed), bulkSuccessfulResults: done });
}
