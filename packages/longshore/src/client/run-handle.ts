// One run over HTTP.

import { toJson } from "../core/json/to-json.ts";
import type { RequestOptions, RunHandle, RunStatus, SentSignal, SignalOptions, WaitOptions } from "./client.ts";
import { withDeadline } from "./deadline.ts";
import { untilEnded } from "./end-poll.ts";
import { newId } from "./new-id.ts";
import type { Requests } from "./requests.ts";
import type { RunEvent } from "./run-event.ts";
import { runEvents } from "./run-events.ts";
import { outputOf } from "./run-failed.ts";

export class HttpRun<Output> implements RunHandle<Output> {
  readonly id: string;
  readonly #requests: Requests;
  readonly #path: string;

  constructor(requests: Requests, id: string) {
    this.id = id;
    this.#requests = requests;
    this.#path = `/runs/${encodeURIComponent(id)}`;
  }

  result(options: WaitOptions = {}): Promise<Output> {
    const { clock } = this.#requests;
    return withDeadline(options, { clock, what: `Run ${this.id}` }, async (signal) =>
      outputOf(await untilEnded<RunStatus<Output>>(this.#requests, this.#path, signal)),
    );
  }

  status({ signal }: RequestOptions = {}): Promise<RunStatus<Output>> {
    return this.#requests.get(this.#path, { signal });
  }

  events({ signal }: RequestOptions = {}): AsyncIterable<RunEvent> {
    return runEvents(this.#requests, this.id, signal);
  }

  async signal(name: string, value?: unknown, { key, signal }: SignalOptions = {}): Promise<SentSignal> {
    // With a key, a request that is sent again after a broken connection sends no second signal.
    const body = { name, value: toJson(value), key: key ?? newId(this.#requests.clock.now()) };
    const sent = await this.#requests.post<SentSignal>(`${this.#path}/signals`, { body, signal });
    const { number, state, awaited } = sent;
    return { number, name: sent.name, state, ...(awaited === undefined ? {} : { awaited }) };
  }

  async cancel(reason?: string, { signal }: RequestOptions = {}): Promise<boolean> {
    const run = await this.#requests.post<RunStatus>(`${this.#path}/cancel`, { body: { reason }, signal });
    return run.state === "cancelled";
  }

  async retry({ signal }: RequestOptions = {}): Promise<void> {
    await this.#requests.post(`${this.#path}/retry`, { signal, repeats: false });
  }

  async rerun({ signal }: RequestOptions = {}): Promise<RunHandle<Output>> {
    const { id } = await this.#requests.post<RunStatus>(`${this.#path}/rerun`, { signal, repeats: false });
    return new HttpRun<Output>(this.#requests, id);
  }
}
