// The worker half of workflow-graph: register, claim, execute, report, claim again. README.md of this protocol is the contract; its
// part "Our worker" lists what this half does where the wire leaves it a choice.
//
// Claiming. One claimer, the scout, always runs. On servers with long polls, the scout's empty claim waits at the server; on other servers,
// the scout pauses between empty claims. A claim that found work starts a helper. A helper claims without waiting, and ends at its first
// empty response. So as many claimers as there are free slots empty a full queue, and an idle worker has only one request at a time.

import { type Backoff, backoffMs } from "../../../core/backoff.ts";
import { pause } from "../../../core/clock.ts";
import { agentText } from "../../../core/worker-agent.ts";
import { foresightOf } from "../../../runner/function/foreseen-turns.ts";
import { poll } from "../../../runner/poll.ts";
import type { Capabilities, LogBatch, Transport, TransportHost } from "../../../runner/transport.ts";
import { type ClaimRequest, handlerLabelPrefix, waitSecsMax } from "../wire/shapes.ts";
import { type ClaimAnswer, Client } from "./client.ts";
import { LeasedJob, type LeaseSurroundings } from "./lease.ts";
import { type Settings, settingsOf, type WorkflowGraphOptions } from "./options.ts";
import { shellTask } from "./shell.ts";

/** `await work({ tasks, on: workflowGraph("http://localhost:4500", { labels: ["linux"] }) })` */
export function workflowGraph(url: string | URL, options: WorkflowGraphOptions = {}): Transport {
  return new WorkflowGraphTransport(settingsOf(url, options));
}

/**
 * The capabilities of this protocol's worker half; the runner replaces the rest. The sizes fit a server's default limits for a request: 2
 * MiB, 131,072 values.
 */
const capabilities: Capabilities = {
  defer: false,
  progress: false,
  streams: false,
  logs: true,
  stacks: true,
  blobs: false,
  cancel: true,
  functions: true,
  commandValue: { bytes: 2_000_000, values: 120_000 },
};

/** Maximum number of helpers. With more of them, the limit would be the server's response time. */
const helpersMax = 16;
/**
 * Each running job may send a heartbeat, push logs and poll for a cancel at the same time; claims and the worker's own calls are added to
 * that.
 */
const connectionsPerSlot = 3;
const connectionsMax = 512;
const logBytesMax = 64 * 1024;
const retryPolicy: Backoff = { kind: "exponential", delayMs: 500, maxMs: 15_000, jitter: 0.3 };
/** The reason for ending a pause. A constant, because an abort without a reason creates an exception with a stack each time. */
const restReason = "There is something to do.";
/** The name in events of polls instead of a task's. */
const anyTask = "*";
/** Jitter, so that workers that started together do not poll together. */
const pollJitter = 0.1;

class WorkflowGraphTransport implements Transport {
  readonly name: string;
  readonly capabilities = capabilities;
  readonly logBatch: LogBatch;
  readonly #settings: Settings;
  readonly #claimers = new Set<Promise<void>>();
  readonly #server = { beatsTellCancel: false, waitSecs: 0 };
  #host!: TransportHost;
  #client!: Client;
  #around!: LeaseSurroundings;
  #labels: readonly string[] = [];
  #registered = false;
  #registering: Promise<void> | undefined;
  #helpers = 0;
  /** Ends the scout's pause, or the wait of its long poll. */
  #rest = new AbortController();
  #poll = new AbortController();
  #stopWorkerBeats: () => void = () => {};
  #stopped = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.name = `workflow-graph ${settings.url.origin}`;
    this.logBatch = { everyMs: settings.logFlushMs, bytesMax: logBytesMax };
  }

  async start(host: TransportHost): Promise<void> {
    const { url, token, shell, env, cwd } = this.#settings;
    this.#host = host;
    this.#labels = labelsOf(this.#settings, host);
    const connections = Math.min(connectionsMax, host.slots.total * connectionsPerSlot + helpersMax);
    this.#client = await Client.open({ url, token, connections });
    const foresee = foresightOf(host.tasks);
    this.#around = {
      client: this.#client,
      settings: this.#settings,
      clock: host.clock,
      shell: shell ? shellTask({ env, cwd, clock: host.clock }) : undefined,
      server: this.#server,
      failing: host.failing,
      working: host.working,
      foresee: () => foresee,
      nextClaim: () => (this.#server.waitSecs > 0 && this.#registered ? this.#claimBody() : undefined),
    };
    void this.#enlist("scout");
    this.#beatWorkerLater();
  }

  async drain(): Promise<void> {
    this.#rest.abort(restReason);
    // The server takes back a job that it granted to an aborted poll. Claims that do not wait are not aborted: their responses come soon,
    // and their jobs are still run.
    this.#poll.abort();
    while (this.#claimers.size > 0) await Promise.all(this.#claimers);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopWorkerBeats();
    await this.#client?.close();
  }

  #enlist(role: "scout" | "helper"): Promise<void> {
    const claimer: Promise<void> = this.#claim(role).finally(() => this.#claimers.delete(claimer));
    this.#claimers.add(claimer);
    return claimer;
  }

  async #claim(role: "scout" | "helper"): Promise<void> {
    const { slots, draining, clock } = this.#host;
    for (let failures = 0; !draining.aborted; ) {
      const slot = await slots.take();
      if (slot === undefined) return;
      const sinceMs = clock.now();
      try {
        await this.#register();
        const { claim, span } = await this.#reportedClaim(role);
        failures = 0;
        this.#host.working("claim");
        if (claim !== undefined) {
          // A finished job often makes others ready, so its end ends the scout's pause.
          void slot.run(new LeasedJob(claim, this.#around, span)).then(() => this.#rest.abort(restReason));
          this.#callHelper();
          continue;
        }
        slot.release();
        if (role === "helper") return;
        await this.#pauseFor(this.#pollPauseMs(clock.now() - sinceMs));
      } catch (error) {
        slot.release();
        if (draining.aborted) return;
        // The next response may come from a server that does not know this worker.
        this.#registered = false;
        this.#host.failing("claim", error);
        if (role === "helper") return;
        await this.#pauseFor(backoffMs(retryPolicy, ++failures, Math.random()));
      }
    }
  }

  /** A claim is for any task of this worker, so its events name none of them. */
  #reportedClaim(role: "scout" | "helper"): Promise<ClaimAnswer> {
    const received = ({ claim }: ClaimAnswer) => (claim === undefined ? 0 : 1);
    const call = () => this.#claimOnce(role);
    return poll(this.#host, { task: anyTask, worker: this.#settings.workerId, count: 1, call, received });
  }

  async #claimOnce(role: "scout" | "helper"): Promise<ClaimAnswer> {
    const body = this.#claimBody();
    const waitSecs = role === "scout" ? this.#waitSecs() : 0;
    const answer =
      waitSecs > 0 ? await this.#client.claim({ ...body, wait_secs: waitSecs }, this.#poll.signal) : await this.#client.claim(body);
    this.#learn(answer.waitSecs);
    return answer;
  }

  #claimBody(): ClaimRequest {
    const { workerId, leaseTtlSecs } = this.#settings;
    return { worker_id: workerId, labels: [...this.#labels], lease_ttl_secs: leaseTtlSecs };
  }

  #waitSecs(): number {
    return Math.floor(Math.min(this.#server.waitSecs, waitSecsMax, this.#host.waitMsMax / 1_000));
  }

  /** The pause after an empty claim. After a full long poll there is no pause; when the claim returned early, there is one. */
  #pollPauseMs(tookMs: number): number {
    const pauseMs = this.#settings.pollMs * (1 + pollJitter * (2 * Math.random() - 1));
    return this.#waitSecs() > 0 ? Math.max(0, Math.min(pauseMs, this.#waitSecs() * 1_000 - tookMs)) : pauseMs;
  }

  async #pauseFor(ms: number): Promise<void> {
    if (ms <= 0 || this.#host.draining.aborted) return;
    this.#rest = new AbortController();
    await pause(this.#host.clock, ms, this.#rest.signal);
  }

  #callHelper(): void {
    if (this.#helpers >= helpersMax || this.#host.slots.free === 0 || this.#host.draining.aborted) return;
    this.#helpers++;
    void this.#enlist("helper").then(() => this.#helpers--);
  }

  #register(): Promise<void> {
    if (this.#registered) return Promise.resolve();
    this.#registering ??= this.#client
      .register({ worker_id: this.#settings.workerId, labels: [...this.#labels] }, agentText(this.#host.slots.total))
      .then((waitSecs) => {
        this.#registered = true;
        this.#learn(waitSecs);
        this.#host.working("register");
      })
      .finally(() => {
        this.#registering = undefined;
      });
    return this.#registering;
  }

  /**
   * A server with long polls is a Longshore server, so its heartbeat responses should report cancels. This is assumed until a response does
   * not.
   */
  #learn(waitSecs: number): void {
    if (waitSecs > 0 && this.#server.waitSecs === 0) this.#server.beatsTellCancel = true;
    this.#server.waitSecs = waitSecs;
  }

  #beatWorkerLater(): void {
    // A heartbeat that was in progress when the worker stopped is the last one.
    if (this.#stopped) return;
    const { clock } = this.#host;
    this.#stopWorkerBeats = clock.at(clock.now() + this.#settings.workerHeartbeatMs, () => {
      void this.#beatWorker().finally(() => this.#beatWorkerLater());
    });
  }

  async #beatWorker(): Promise<void> {
    if (!this.#registered) return;
    try {
      if (await this.#client.beatWorker(this.#settings.workerId)) return this.#host.working("worker heartbeat");
      this.#registered = false;
      await this.#register();
    } catch (error) {
      this.#registered = false;
      if (!this.#stopped) this.#host.failing("worker heartbeat", error);
    }
  }
}

function labelsOf(settings: Settings, host: TransportHost): readonly string[] {
  const tasks = [...host.tasks.values()];
  return [
    ...new Set([...settings.labels, ...tasks.flatMap((task) => task.labels), ...tasks.map((task) => handlerLabelPrefix + task.name)]),
  ];
}
