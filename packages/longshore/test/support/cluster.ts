// Several servers on one PostgreSQL schema, as processes that a test kills, stops and starts again by number.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { HistoryWriter } from "../faults/history.ts";
import { type ManagedProcess, nodeProcess } from "../faults/processes.ts";
import { freePort } from "./port.ts";
import type { TestPostgres } from "./postgres.ts";
import { untilElsewhere } from "./until.ts";

/** Of one node. */
export interface OwnOptions {
  readonly flags?: readonly string[];
  readonly env?: Record<string, string>;
  /** The node's way to the data. */
  readonly store?: string;
}

export interface ClusterOptions {
  readonly postgres: TestPostgres;
  /** Where logs and histories are written. */
  readonly directory: string;
  readonly history: HistoryWriter;
  readonly nodes: number;
  /** Flags of `longshore start` for all nodes. */
  readonly flags?: readonly string[];
  readonly own?: (index: number, port: number) => OwnOptions | Promise<OwnOptions>;
  /** The address of the data. Default: a new schema. */
  readonly store?: string;
}

/** Whether a client may expect answers of a node. */
type Presence = "there" | "leaving" | "away";

/** A node and the time of its last change: responses to earlier requests do not count as errors. */
export class NodeProcess {
  readonly index: number;
  readonly port: number;
  readonly url: string;
  readonly process: ManagedProcess;
  #presence: Presence = "away";
  #since = 0;

  constructor(index: number, port: number, process: ManagedProcess) {
    this.index = index;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.process = process;
  }

  get isThere(): boolean {
    return this.#presence === "there";
  }

  /**
   * Whether a request that began at this time, by the monotonic clock, must get a response. A stopping node still replies to its requests.
   */
  owesAnswer(begunAt: number): boolean {
    if (this.#presence === "there") return begunAt >= this.#since;
    return this.#presence === "leaving" && begunAt < this.#since;
  }

  async start(): Promise<void> {
    await this.process.start();
    this.#become("there");
  }

  async kill(): Promise<void> {
    this.#become("away");
    await this.process.kill();
  }

  /** SIGTERM, and waits for its end. */
  async end(): Promise<void> {
    this.#become("leaving");
    await this.process.end();
    this.#become("away");
  }

  pause(): void {
    this.#become("away");
    this.process.pause();
  }

  resume(): void {
    this.process.resume();
    this.#become("there");
  }

  /** As its own metrics show it; null while it does not answer. */
  async state(): Promise<string | null> {
    const text = await fetch(`${this.url}/metrics`).then(
      (answer) => answer.text(),
      () => "",
    );
    return /^longshore_node_state\{state="([a-z-]+)"\} 1$/m.exec(text)?.[1] ?? null;
  }

  #become(presence: Presence): void {
    this.#presence = presence;
    this.#since = performance.now();
  }
}

export class Cluster {
  readonly store: string;
  readonly nodes: readonly NodeProcess[];
  readonly #postgres: TestPostgres;

  static async open(options: ClusterOptions): Promise<Cluster> {
    const { postgres, directory, history, flags = [], own = (): OwnOptions => ({}), store = postgres.newUrl() } = options;
    mkdirSync(join(directory, "workflows"), { recursive: true });
    const nodes: NodeProcess[] = [];
    for (let index = 0; index < options.nodes; index++) {
      const port = await freePort();
      const { flags: more = [], env, store: way = store } = await own(index, port);
      const life = { directory, port, store: way, history, flags: [...flags, ...more], env };
      nodes.push(new NodeProcess(index, port, nodeProcess({ ...life, name: `node-${index}` })));
    }
    return new Cluster(store, postgres, nodes);
  }

  private constructor(store: string, postgres: TestPostgres, nodes: readonly NodeProcess[]) {
    this.store = store;
    this.#postgres = postgres;
    this.nodes = nodes;
  }

  /** One after the other: the first owns the data. */
  async start(): Promise<void> {
    for (const node of this.nodes) await node.start();
  }

  /** The node that owns the data, by the row of PostgreSQL. Waits until one of the running nodes owns it. */
  async owner(): Promise<NodeProcess> {
    return untilElsewhere(async () => (await this.ownerNow()) ?? false);
  }

  /** Null when no running node owns the data. */
  async ownerNow(): Promise<NodeProcess | null> {
    const name = await this.#ownerName().catch(() => "");
    return this.nodes.find((node) => node.isThere && name.split("/").at(-2) === String(node.process.pid())) ?? null;
  }

  #turn = 0;

  /** The port of the next running node, as a balancer would choose it. */
  readonly nextPort = (): number => {
    const there = this.nodes.filter((node) => node.isThere);
    return ((there[this.#turn++ % there.length] ?? this.nodes[0]) as NodeProcess).port;
  };

  /** The others, in their order. */
  async members(): Promise<NodeProcess[]> {
    const owner = await this.owner();
    return this.nodes.filter((node) => node !== owner);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
  }

  async #ownerName(): Promise<string> {
    const schema = new URL(this.store.replace(/,[^/]*/, "")).searchParams.get("schema") ?? "longshore";
    const [row] = await this.#postgres.query(`SELECT node FROM ${schema}.shard WHERE expires_at > now()`);
    return String(row?.node ?? "");
  }
}
