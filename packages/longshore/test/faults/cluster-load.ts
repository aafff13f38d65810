// Load for a cluster: faulty workers, clients that start runs with and without keys, and Conductor pollers, each on any running node. All
// responses are recorded for the checker, and all errors that a client should not have received.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connect as connectCli } from "../../src/cli/client.ts";
import { liveSource } from "../../src/cli/verify-live.ts";
import { verify } from "../../src/verify/verify.ts";
import { Cluster, type ClusterOptions, type NodeProcess } from "../support/cluster.ts";
import { check, describeViolations } from "./checker.ts";
import { type Client, openClient } from "./client.ts";
import { type Entry, type HistoryWriter, openHistory, readHistory } from "./history.ts";
import { type Connection, connect } from "./http.ts";
import { runWorker } from "./raw-worker.ts";
import { chain, diamond } from "./shapes.ts";

export interface LoadOptions {
  /** The nodes that clients use while they run. */
  readonly through: () => readonly NodeProcess[];
  readonly workers?: number;
  /** Pause between two starts of one client. */
  readonly everyMs?: number;
  /** Expected responses of 500 and above, as while PostgreSQL is unavailable. */
  readonly mayRefuse?: boolean;
}

/** Responses that a client should not have received. */
export interface Trouble {
  readonly node: string;
  readonly request: string;
  readonly why: string;
}

export interface Judged {
  readonly history: Entry[];
  readonly runs: number;
  readonly completions: number;
  readonly answers: number;
}

const SLOTS = 3;
const TTL_SECS = 3;
const WORK_MS: [number, number] = [0, 60];
/** The time after the last fault, on a busy machine. */
const END_MS_MAX = 90_000;

export class Load {
  readonly troubles: Trouble[] = [];
  readonly client: Client;
  readonly #options: LoadOptions;
  readonly #directory: string;
  readonly #starting = new AbortController();
  readonly #working = new AbortController();
  readonly #connections: Connection[] = [];
  readonly #runs: string[] = [];
  #going: Promise<unknown> = Promise.resolve();
  #turn = 0;
  #answers = 0;

  constructor(directory: string, options: LoadOptions) {
    this.#directory = directory;
    this.#options = options;
    this.client = openClient("", join(directory, "client.0.jsonl"), undefined, () => this.connection());
  }

  get answers(): number {
    return this.#answers;
  }

  get runs(): number {
    return this.#runs.length;
  }

  /** Defines workflows, and begins. Resolves when the first runs are acknowledged. */
  async begin(): Promise<void> {
    const { workers = 2, everyMs = 20 } = this.#options;
    const workflows = [await this.client.create("chain", chain(3)), await this.client.create("diamond", diamond())];
    const starting = async (start: (workflow: string) => Promise<string>) => {
      for (let turn = 0; !this.#starting.signal.aborted; turn++) {
        // After the death of its node, a start without a key may have created a run that no client knows. So it is not repeated.
        const id = await start(workflows[turn % workflows.length] as string).catch(() => null);
        if (id !== null) this.#runs.push(id);
        await pause(everyMs);
      }
    };
    const habits = { slots: SLOTS, ttlSecs: TTL_SECS, waitSecs: 1, workMs: WORK_MS };
    const rudeness = { failRate: 0.05, dozeRate: 0, hangUpRate: 0.02, repeatRate: 0.1, logRate: 0.2 };
    const working = Array.from({ length: workers }, (_, at) => {
      const name = `worker-${at}`;
      const settings = { ...habits, ...rudeness, url: "", name, history: join(this.#directory, `${name}.0.jsonl`), seed: at };
      return runWorker(settings, this.#working.signal, () => this.connection());
    });
    this.#going = Promise.all([
      starting((workflow) => this.client.start(workflow)),
      // A refused start may have been performed, and without a key the client cannot find out.
      ...(this.#options.mayRefuse ? [] : [starting((workflow) => this.client.startOnce(workflow))]),
      this.#pollConductor(),
      ...working,
    ]);
    this.#going.catch(() => {});
    await this.until(() => this.#runs.length > 3);
  }

  /** Waits for more responses, so that a fault happens during work. */
  async more(count = 30): Promise<void> {
    const wanted = this.#answers + count;
    await this.until(() => this.#answers >= wanted);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await pause(2);
  }

  /** Ends the load, waits for the end of all runs, and throws what the checkers find. */
  async judge(): Promise<Judged> {
    this.#starting.abort();
    await this.client.untilEnded(this.#runs, END_MS_MAX);
    this.#working.abort();
    await this.#going;
    const final = await this.client.readFinal(this.#runs);
    const history = readHistory(this.#directory);
    const violations = check(history, final);
    if (violations.length > 0)
      throw new Error(`${violations.length} broken promises in ${this.#directory}\n${describeViolations(violations)}`);
    const [node] = this.#options.through();
    const { findings } = await verify(liveSource(connectCli({ on: node?.url as string })), { recorded: [], now: 0 });
    if (findings.length > 0) throw new Error(`longshore verify found: ${JSON.stringify(findings, null, 2)}`);
    const unfinished = final.runs.filter(({ state }) => state !== "succeeded");
    if (unfinished.length > 0) throw new Error(`Runs that did not succeed: ${JSON.stringify(unfinished)}`);
    const completions = history.filter((entry) => entry.kind === "report-got" && entry.verb === "complete" && entry.status === 200).length;
    return { history, runs: this.#runs.length, completions, answers: this.#answers };
  }

  stop(): void {
    this.#starting.abort();
    this.#working.abort();
    for (const connection of this.#connections) connection.close();
    this.client.close();
  }

  /** A connection that uses the next running node for each request. */
  connection(): Connection {
    const byNode = new Map<NodeProcess, Connection>();
    const close = () => {
      for (const one of byNode.values()) one.close();
    };
    const request: Connection["request"] = async (method, path, body, options = {}) => {
      const there = this.#options.through().filter((node) => node.isThere);
      const node = there[this.#turn++ % there.length];
      // None of this client's nodes runs.
      if (node === undefined) throw await pause(5).then(() => new Error("No node is there."));
      const one = byNode.get(node) ?? connect(node.url, Number.POSITIVE_INFINITY);
      byNode.set(node, one);
      const begunAt = performance.now();
      const note = (why: string) => this.troubles.push({ node: node.process.name, request: `${method} ${path}`, why });
      try {
        const answer = await one.request(method, path, body, options);
        if (answer.status >= 500 && !this.#options.mayRefuse) note(`${answer.status} ${answer.text.slice(0, 300)}`);
        if (answer.status < 500) this.#answers++;
        return answer;
      } catch (error) {
        if (!options.signal?.aborted && node.owesAnswer(begunAt)) note(String(error));
        throw error;
      }
    };
    const made = { request, close };
    this.#connections.push(made);
    return made;
  }

  /** Polls of another protocol, which find nothing: they must get an answer, too. */
  async #pollConductor(): Promise<void> {
    const connection = this.connection();
    while (!this.#working.signal.aborted) {
      const answer = await connection.request("GET", "/api/tasks/poll/batch/nothing?count=1&timeout=200&workerid=idle").catch(() => null);
      if (answer === null) await pause(10);
    }
  }
}

export interface Place {
  readonly directory: string;
  readonly cluster: Cluster;
  load(options?: Partial<LoadOptions>): Load;
}

/** A cluster with running nodes for one test. Its files stay behind when the test fails. */
export async function inCluster(
  options: Omit<ClusterOptions, "directory" | "history">,
  body: (place: Place) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "longshore-cluster-"));
  const history: HistoryWriter = openHistory(join(directory, "chaos.0.jsonl"));
  const cluster = await Cluster.open({ ...options, directory, history });
  const loads: Load[] = [];
  let passed = false;
  try {
    await cluster.start();
    await body({
      directory,
      cluster,
      load(given = {}) {
        const load = new Load(directory, { through: () => cluster.nodes, ...given });
        loads.push(load);
        return load;
      },
    });
    passed = true;
  } finally {
    for (const load of loads) load.stop();
    await cluster.close();
    history.close();
    if (passed) rmSync(directory, { recursive: true });
    else process.stdout.write(`faults: evidence in ${directory}\n`);
  }
}

/** The longest time that a client waited for an answer, in the minute before a moment of the machine's clock. */
export function outageMs(history: readonly Entry[], tick: number): number {
  const answered = new Set(["run-start-acknowledged", "claim-got", "report-got", "claim-empty"]);
  const ticks = history.filter((entry) => answered.has(entry.kind) && entry.tick > tick - 100_000 && entry.tick < tick + 60_000_000);
  let longest = 0;
  for (const [at, entry] of ticks.entries()) {
    const next = ticks[at + 1];
    if (next !== undefined && next.tick > tick) longest = Math.max(longest, next.tick - Math.max(entry.tick, tick));
  }
  return Math.round(longest / 1_000);
}

export function tickNow(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
