// The worker half of Conductor: one poll loop per task, all on one connection pool. README.md of this protocol is the contract; its part
// "Our worker" lists what this half does where the wire leaves it a choice.

import { LongshoreError } from "../../../core/errors.ts";
import type { Task } from "../../../core/task.ts";
import { agentText } from "../../../core/worker-agent.ts";
import type { Capabilities, LogBatch, ReportTries, Transport, TransportHost } from "../../../runner/transport.ts";
import { Client } from "./client.ts";
import { describeWorker, type WorkerConfig, workerConfig } from "./config.ts";
import type { WorkSurroundings } from "./lease.ts";
import { type ConductorOptions, type Settings, settingsOf } from "./options.ts";
import { Outbox } from "./outbox.ts";
import { Poller } from "./poll.ts";
import { register } from "./register.ts";
import { Updates } from "./update.ts";

/** The result of `conductor()`: a transport whose polling can be paused. */
export interface ConductorTransport extends Transport {
  /** No further polls of this task, or of all; running tasks continue. */
  pause(task?: string): void;
  resume(task?: string): void;
}

/**
 * `await work({ tasks, on: conductor("http://localhost:8080") })`. The address may end with `/api` or not; by default it is
 * `CONDUCTOR_SERVER_URL`, else `http://localhost:8080`.
 */
export function conductor(url?: string | URL, options: ConductorOptions = {}): ConductorTransport {
  return new Conductor(settingsOf(url, options));
}

/** Progress becomes a log line; there are no blobs. */
const capabilities: Capabilities = { defer: true, progress: false, streams: false, logs: true, blobs: false, cancel: true };
/** Lines are sent with the result, so it is useless to pass them on earlier. */
const logBatch: LogBatch = { everyMs: 3_600_000, bytesMax: 64 * 1024 };
/** Four tries. */
const reportTries: ReportTries = { pausesMs: [10_000, 20_000, 30_000] };
/** When tasks share fewer slots than they could fill, an empty poll releases its slot this often. */
const sharedWaitMsMax = 1_000;

class Conductor implements ConductorTransport {
  readonly name: string;
  readonly capabilities = capabilities;
  readonly logBatch = logBatch;
  readonly reportTries = reportTries;
  readonly #settings: Settings;
  readonly #pollers: Poller[] = [];
  readonly #paused = new Map<string | undefined, boolean>();
  #client: Client | undefined;
  #outbox: Outbox | undefined;
  #polling: Promise<unknown> = Promise.resolve();

  constructor(settings: Settings) {
    this.#settings = settings;
    this.name = `conductor ${settings.url.origin}`;
  }

  slotsFor(tasks: ReadonlyMap<string, Task>): number {
    return this.#configs(tasks, undefined).reduce((sum, { threadCount }) => sum + threadCount, 0);
  }

  async start(host: TransportHost): Promise<void> {
    const configs = this.#configs(host.tasks, host.slots.configured);
    for (const config of configs) host.notice({ level: "info", message: describeWorker(config, process.pid) });
    const settings = this.#settings;
    const ended = (method: string, uri: string, status: number, durationMs: number) => {
      if (host.wants("requestEnded")) host.emit("requestEnded", { method, uri, status, durationMs });
    };
    this.#client = await Client.open({ settings, clock: host.clock, ended, agent: agentText(host.slots.total) });
    this.#outbox = this.#openOutbox(host, this.#client);
    const wanted = configs.reduce((sum, { threadCount }) => sum + threadCount, 0);
    const waitMsMax = Math.min(host.waitMsMax, wanted > host.slots.total ? sharedWaitMsMax : Number.POSITIVE_INFINITY);
    const updates = new Updates({ client: this.#client, clock: host.clock, v2: settings.updateV2 });
    for (const config of configs) this.#pollers.push(this.#poller(host, this.#client, config, updates, waitMsMax));
    this.#outbox?.start();
    this.#polling = Promise.all(this.#pollers.map((poller) => poller.run()));
  }

  async drain(): Promise<void> {
    await this.#polling;
  }

  async stop(): Promise<void> {
    await this.#outbox?.stop();
    await this.#client?.close();
  }

  pause(task?: string): void {
    for (const poller of this.#find(task)) poller.pause();
    this.#paused.set(task, true);
  }

  resume(task?: string): void {
    for (const poller of this.#find(task)) poller.resume();
    this.#paused.set(task, false);
  }

  #find(task: string | undefined): readonly Poller[] {
    const found = this.#pollers.filter(({ config }) => task === undefined || config.task === task);
    if (found.length > 0 || this.#client === undefined || task === undefined) return found;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `No task is named ${JSON.stringify(task)} here.`, { detail: { field: "task" } });
  }

  #configs(tasks: ReadonlyMap<string, Task>, slots: number | undefined): readonly WorkerConfig[] {
    const { env, code, workers, workerId } = this.#settings;
    for (const name of Object.keys(workers)) {
      if (tasks.has(name)) continue;
      const message = `workers has options for ${JSON.stringify(name)}, expected one of the worker's tasks.`;
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: `workers.${name}` } });
    }
    return [...tasks.values()].map((task) => {
      const config = workerConfig(task, { env, code: [workers[task.name] ?? {}, code], slots, workerId });
      const paused = this.#paused.get(task.name) ?? this.#paused.get(undefined) ?? config.paused;
      return { ...config, paused };
    });
  }

  #poller(host: TransportHost, client: Client, config: WorkerConfig, updates: Updates, waitMsMax: number): Poller {
    const { cancelPollMs, url } = this.#settings;
    const { clock } = host;
    const error = (message: string) => host.notice({ level: "error", message });
    const outbox = this.#outbox;
    const around = (own: Pick<WorkSurroundings, "mayChain" | "misplaced">): WorkSurroundings => ({
      client,
      updates,
      outbox,
      clock,
      config,
      cancelPollMs,
      ...own,
      error,
      fetched: (event) => host.emit("inputFetched", event),
    });
    const uiUrl = this.#settings.env.CONDUCTOR_UI_SERVER_URL ?? `${url.origin}${url.pathname.replace(/\/(api\/?)?$/, "")}`;
    const task = host.tasks.get(config.task) as Task;
    const { notice, failing } = host;
    return new Poller({
      host,
      client,
      config,
      waitMsMax,
      around,
      othersWait: (self) => this.#pollers.some((poller) => poller !== self && poller.waitsForSlot),
      register: () => register({ client, task, config, notice, failing, uiUrl }),
    });
  }

  #openOutbox(host: TransportHost, client: Client): Outbox | undefined {
    const { outboxFolder: folder, url } = this.#settings;
    if (folder === undefined) return undefined;
    const { clock, notice, failing, working } = host;
    const send = (body: string, signal: AbortSignal) => client.update(body, signal);
    return new Outbox({ folder, server: url.href.replace(/\/(api\/?)?$/, ""), clock, send, notice, failing, working });
  }
}
