// A store of artifacts in memory, for tests of its users. The contract suite tests the real stores.

import type { JsonObject } from "../../src/core/json/json.ts";
import {
  type ArtifactStore,
  type Attempt,
  type PartialArtifact,
  type PartRef,
  type ReadOptions,
  UpstreamFailed,
  type UpstreamPart,
  unknownSource,
} from "../../src/protocols/flowkit/wire/artifacts/artifacts.ts";
import { type ActiveRun, nodeKey } from "../../src/protocols/flowkit/wire/shapes.ts";

interface Node {
  readonly parts: Map<string, JsonObject>;
  state: "open" | "complete" | "failed" | "cancelled";
  final: JsonObject | undefined;
  epoch: number;
}

export class MemoryArtifacts implements ArtifactStore {
  readonly name = "memory";
  tells = false;
  readonly nodes = new Map<string, Node>();
  readonly states = new Map<string, ActiveRun>();
  /** The calls of it, in order. */
  readonly calls: string[] = [];
  /** Nodes whose cancel flag is set. */
  readonly flags = new Set<string>();
  /** Names that do not belong to a node. */
  readonly unknown = new Set<string>();
  /** How upstream nodes were read, in order. */
  readonly reads: { readonly sources: readonly string[]; readonly options: Omit<ReadOptions, "signal"> }[] = [];
  /** Thrown by the next calls that write. */
  readonly troubles: Error[] = [];
  readonly #finished = new Map<string, Set<string>>();
  readonly #watchers = new Set<() => void>();

  node(taskId: string, nodeId: string): Node {
    const key = nodeKey(taskId, nodeId);
    let node = this.nodes.get(key);
    if (node === undefined) {
      node = { parts: new Map(), state: "open", final: undefined, epoch: 0 };
      this.nodes.set(key, node);
    }
    return node;
  }

  /** What an upstream node has produced. */
  produce(taskId: string, nodeId: string, metas: readonly JsonObject[], complete = true): void {
    const node = this.node(taskId, nodeId);
    for (const meta of metas) node.parts.set(`${nodeId[0]}${node.parts.size}`, meta);
    if (complete) node.state = "complete";
    this.#changed();
  }

  end(taskId: string, nodeId: string, state: Node["state"]): void {
    this.node(taskId, nodeId).state = state;
    this.#changed();
  }

  finishedBy(taskId: string, nodeId: string): string[] {
    return [...(this.#finished.get(nodeKey(taskId, nodeId)) ?? [])];
  }

  async putPartials(attempt: Attempt, parts: readonly PartialArtifact[]): Promise<boolean> {
    this.#trouble();
    this.calls.push(`put ${parts.map(({ uid }) => uid).join(",")}`);
    const node = this.#fenced(attempt);
    if (node === undefined) return false;
    for (const { uid, meta } of parts) node.parts.set(uid, meta);
    this.#changed();
    return true;
  }

  async complete(attempt: Attempt, meta: JsonObject): Promise<boolean> {
    this.#trouble();
    this.calls.push("complete");
    const node = this.#fenced(attempt);
    if (node === undefined) return false;
    node.state = "complete";
    node.final = meta;
    this.#changed();
    return true;
  }

  async isComplete(taskId: string, nodeId: string): Promise<boolean> {
    return this.node(taskId, nodeId).state === "complete";
  }

  async *read(consumer: Attempt, sources: readonly string[], options: ReadOptions): AsyncIterable<UpstreamPart> {
    const { signal: _, ...told } = options;
    this.reads.push({ sources, options: told });
    for (const source of sources) if (this.unknown.has(source)) throw unknownSource(consumer.taskId, source);
    const given = new Set<string>();
    const finished = this.#finished.get(nodeKey(consumer.taskId, consumer.nodeId)) ?? new Set();
    for (;;) {
      options.signal.throwIfAborted();
      const nodes = sources.map((source) => [source, this.node(consumer.taskId, source)] as const);
      const states = nodes.map(([, { state }]) => state);
      let some = false;
      for (const [fromNode, { parts }] of nodes) {
        for (const [uid, meta] of parts) {
          const key = `${fromNode} ${uid}`;
          if (given.has(key) || finished.has(key)) continue;
          given.add(key);
          some = true;
          yield { fromNode, uid, meta };
        }
      }
      if (some) continue;
      for (const [at, state] of states.entries()) {
        if (state === "failed" || state === "cancelled") throw new UpstreamFailed(sources[at] as string, state);
      }
      if (options.eofOnTaskDone && states.every((state) => state === "complete")) return;
      await this.#next(options.signal);
    }
  }

  async finish(consumer: Attempt, parts: readonly PartRef[]): Promise<boolean> {
    this.#trouble();
    const key = nodeKey(consumer.taskId, consumer.nodeId);
    const finished = this.#finished.get(key) ?? new Set();
    for (const { fromNode, uid } of parts) finished.add(`${fromNode} ${uid}`);
    this.#finished.set(key, finished);
    return this.#fenced(consumer) !== undefined;
  }

  async cancelled(taskId: string, nodeId: string): Promise<boolean> {
    return this.flags.has(nodeKey(taskId, nodeId));
  }

  async epochOf(taskId: string, nodeId: string): Promise<number | null> {
    this.calls.push("epoch");
    this.#trouble();
    return this.nodes.get(nodeKey(taskId, nodeId))?.epoch ?? null;
  }

  async loadState(workerId: string): Promise<ActiveRun | null> {
    return this.states.get(workerId) ?? null;
  }

  async saveState(workerId: string, run: ActiveRun | null): Promise<void> {
    if (run === null) this.states.delete(workerId);
    else this.states.set(workerId, run);
  }

  async task(): Promise<JsonObject | null> {
    return null;
  }

  async close(): Promise<void> {}

  #fenced({ taskId, nodeId, epoch }: Attempt): Node | undefined {
    const node = this.node(taskId, nodeId);
    if (epoch < node.epoch) return undefined;
    node.epoch = epoch;
    return node;
  }

  #trouble(): void {
    const error = this.troubles.shift();
    if (error !== undefined) throw error;
  }

  #changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  #next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#watchers.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#watchers.add(done);
      signal.addEventListener("abort", done, { once: true });
    });
  }
}
