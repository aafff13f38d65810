// One schedule over HTTP.

import { LongshoreError } from "../core/errors.ts";
import type { RequestOptions, RunHandle, RunStatus } from "./client.ts";
import type { Requests } from "./requests.ts";
import { HttpRun } from "./run-handle.ts";
import type { BackfillRange, RunNowOptions, ScheduleHandle, ScheduleStatus } from "./schedule.ts";

export function schedulePath(name: string): string {
  return `/schedules/${encodeURIComponent(name)}`;
}

export class HttpSchedule implements ScheduleHandle {
  readonly name: string;
  readonly #requests: Requests;
  readonly #path: string;

  constructor(requests: Requests, name: string) {
    this.name = name;
    this.#requests = requests;
    this.#path = schedulePath(name);
  }

  status({ signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#requests.get(this.#path, { signal });
  }

  pause(reason: string, { signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#requests.post(`${this.#path}/pause`, { body: { reason }, signal });
  }

  resume({ signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#requests.post(`${this.#path}/resume`, { signal });
  }

  async run<Output>({ overlap, signal }: RunNowOptions = {}): Promise<RunHandle<Output>> {
    const { id } = await this.#requests.post<RunStatus>(`${this.#path}/run`, { body: { overlap }, signal, repeats: false });
    return new HttpRun<Output>(this.#requests, id);
  }

  backfill({ from, to, overlap }: BackfillRange, { signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#requests.post(`${this.#path}/backfill`, { body: { from, to, overlap }, signal, repeats: false });
  }

  endBackfill({ signal }: RequestOptions = {}): Promise<ScheduleStatus> {
    return this.#requests.delete(`${this.#path}/backfill`, { signal });
  }

  async remove({ signal }: RequestOptions = {}): Promise<boolean> {
    try {
      await this.#requests.delete(this.#path, { signal });
      return true;
    } catch (error) {
      if (error instanceof LongshoreError && error.code === "LONGSHORE_NOT_FOUND") return false;
      throw error;
    }
  }
}
