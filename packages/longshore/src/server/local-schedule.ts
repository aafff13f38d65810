// One schedule of a server in the program's own process.

import type { RequestOptions, RunHandle } from "../client/client.ts";
import type { BackfillRange, RunNowOptions, ScheduleHandle, ScheduleInfo, ScheduleStatus } from "../client/schedule.ts";
import { byProgram } from "../core/orderer.ts";
import { noSuchSchedule } from "../engine/schedule/no-such-schedule.ts";
import { timeOf } from "../engine/schedule/rules.ts";
import { type Schedule, upcomingShown } from "../engine/schedule/schedule.ts";
import { scheduleStatus } from "../engine/schedule/schedule-status.ts";
import type { Engine } from "./engine.ts";
import { LocalRun, type LocalRunDeps } from "./local-run.ts";

export interface LocalScheduleDeps extends LocalRunDeps, Pick<Engine, "makeId" | "schedules"> {}

export class LocalSchedule implements ScheduleHandle {
  readonly name: string;
  readonly #deps: LocalScheduleDeps;

  constructor(deps: LocalScheduleDeps, name: string) {
    this.#deps = deps;
    this.name = name;
  }

  status({ signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#after(signal, (schedules) => schedules.get(this.name));
  }

  pause(reason: string, { signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#after(signal, (schedules) => schedules.pause(this.name, reason));
  }

  resume({ signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#after(signal, (schedules) => schedules.resume(this.name));
  }

  async run<Output>({ overlap, signal }: RunNowOptions = {}): Promise<RunHandle<Output>> {
    signal?.throwIfAborted();
    const { schedules, makeId, clock } = this.#deps;
    const options = { id: makeId(clock.now()), ...(overlap === undefined ? {} : { overlap }) };
    const { run } = this.#known(await this.#ordered(() => schedules.run(this.name, options)));
    return new LocalRun<Output>(this.#deps, run.id);
  }

  async backfill({ from, to, overlap = "queue" }: BackfillRange, { signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    const range = { from: moment(from, "from"), to: moment(to, "to"), overlap };
    return this.#after(signal, (schedules) => schedules.backfill(this.name, range));
  }

  endBackfill({ signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#after(signal, (schedules) => schedules.endBackfill(this.name));
  }

  async remove({ signal }: RequestOptions = {}): Promise<boolean> {
    signal?.throwIfAborted();
    return this.#ordered(() => this.#deps.schedules.remove(this.name));
  }

  async #after(
    signal: AbortSignal | undefined,
    change: (schedules: LocalScheduleDeps["schedules"]) => Promise<Schedule | undefined>,
  ): Promise<ScheduleStatus> {
    signal?.throwIfAborted();
    const { schedules } = this.#deps;
    const row = this.#known(await this.#ordered(() => change(schedules)));
    return { ...scheduleInfo(row), upcoming: await schedules.upcoming(row, upcomingShown) };
  }

  #ordered<T>(order: () => Promise<T>): Promise<T> {
    return this.#deps.orderers.within(byProgram, order);
  }

  #known<Found>(found: Found | undefined): Found {
    if (found !== undefined) return found;
    throw noSuchSchedule(this.name);
  }
}

function moment(time: Date | string | number, field: string): number {
  return timeOf(time instanceof Date ? time.getTime() : time, field);
}

export function scheduleInfo(row: Schedule): ScheduleInfo {
  return scheduleStatus(row, (text) => JSON.parse(text) as unknown);
}
