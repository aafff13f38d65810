// Artifacts in the store of a Longshore server, over HTTP. A read waits at the server until there are parts.

import { type Clock, pause, systemClock } from "../../../../core/clock.ts";
import { isTransient, LongshoreError } from "../../../../core/errors.ts";
import type { FailureListener } from "../../../../core/failure-listener.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import { JsonClient } from "../../../../net/http/json-client.ts";
import {
  type ArtifactStore,
  type Attempt,
  type PartialArtifact,
  type PartRef,
  type ReadOptions,
  type Stretch,
  stretchOf,
  type UpstreamPart,
} from "../../wire/artifacts/artifacts.ts";
import { checkParts } from "../../wire/artifacts/check.ts";
import { grouped } from "../../wire/artifacts/groups.ts";
import { partsOf, type SourcePage, type SourcePosition } from "../../wire/artifacts/pages.ts";
import { type ActiveRun, httpBase } from "../../wire/shapes.ts";

export interface HttpArtifactsOptions {
  /** The server, such as `http://127.0.0.1:4500`. */
  readonly url: string | URL;
  readonly token?: string | undefined;
  /** Concurrent requests: each waiting stream uses one. */
  readonly connections?: number;
  /** True, because the same server is the coordinator, so no events are needed. */
  readonly tells?: boolean;
  readonly clock?: Clock;
  readonly trouble?: FailureListener;
}

const connectionsDefault = 64;
/** Maximum wait: below the timeouts of proxies and the server's own limit. */
const waitMs = 25_000;
/** Maximum text in one request: half of the server's limit, which leaves room for the names. */
const requestBytesMax = 2 * 1024 * 1024;

export function httpArtifacts(options: HttpArtifactsOptions): ArtifactStore {
  return new HttpArtifacts(options);
}

class HttpArtifacts implements ArtifactStore {
  readonly name: string;
  readonly tells: boolean;
  readonly #options: HttpArtifactsOptions;
  readonly #url: URL;
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  #client: Promise<JsonClient> | undefined;

  constructor(options: HttpArtifactsOptions) {
    this.#options = options;
    this.#url = new URL(options.url);
    this.#clock = options.clock ?? systemClock;
    this.tells = options.tells ?? false;
    this.name = `${this.#url.origin}${httpBase}/artifacts`;
  }

  async putPartials(attempt: Attempt, parts: readonly PartialArtifact[]): Promise<boolean> {
    checkParts(parts);
    const written = parts.map(({ uid, meta, json }) => ({ uid, json: json ?? stretchOf(JSON.stringify(meta)) }));
    for (const group of grouped(written, ({ json: { from, to } }) => to - from, requestBytesMax)) {
      if (!(await this.#accepted("/partials", partialsBody(attempt, group)))) return false;
    }
    return true;
  }

  complete(attempt: Attempt, meta: JsonObject): Promise<boolean> {
    return this.#accepted("/complete", JSON.stringify({ ...attemptBody(attempt), meta }));
  }

  async isComplete(taskId: string, nodeId: string): Promise<boolean> {
    return (await this.#get(`/artifacts/complete?${nodeQuery(taskId, nodeId)}`)).complete === true;
  }

  read(consumer: Attempt, sources: readonly string[], options: ReadOptions): AsyncGenerator<UpstreamPart, void> {
    let failures = 0;
    /** Retries without a limit while the server cannot be reached; the stream then continues where it was. */
    const ask = async (positions: readonly SourcePosition[], signal: AbortSignal): Promise<readonly SourcePage[]> => {
      try {
        const pages = await this.#pages(consumer, positions, signal);
        failures = 0;
        this.#options.trouble?.working(this.#reading);
        return pages;
      } catch (error) {
        if (!isTransient(error)) throw error;
        this.#options.trouble?.failing(this.#reading, error);
        await pause(this.#clock, Math.min(options.pollMs * 2 ** failures++, options.backoffMaxMs), signal);
        return [];
      }
    };
    return partsOf(ask, sources, { ...options, signal: AbortSignal.any([options.signal, this.#closed.signal]) });
  }

  async finish(consumer: Attempt, parts: readonly PartRef[]): Promise<boolean> {
    checkParts(parts);
    const refs = parts.map(({ fromNode, uid }) => ({ from_node: fromNode, batch_uid: uid }));
    return this.#accepted("/finish", JSON.stringify({ ...attemptBody(consumer), parts: refs }));
  }

  async cancelled(taskId: string, nodeId: string): Promise<boolean> {
    return (await this.#get(`/artifacts/cancelled?${nodeQuery(taskId, nodeId)}`)).cancelled === true;
  }

  async epochOf(taskId: string, nodeId: string): Promise<number | null> {
    const { attempt_epoch: epoch } = await this.#get(`/artifacts/epoch?${nodeQuery(taskId, nodeId)}`);
    return typeof epoch === "number" ? epoch : null;
  }

  async loadState(workerId: string): Promise<ActiveRun | null> {
    return ((await this.#get(statePath(workerId))).active_run ?? null) as ActiveRun | null;
  }

  async saveState(workerId: string, run: ActiveRun | null): Promise<void> {
    const client = await this.#open();
    await client.call({ method: "PUT", path: httpBase + statePath(workerId), body: JSON.stringify({ active_run: run }) });
  }

  async task(taskId: string): Promise<JsonObject | null> {
    try {
      return await this.#get(`/tasks/${encodeURIComponent(taskId)}`);
    } catch (error) {
      if (error instanceof LongshoreError && error.code === "LONGSHORE_NOT_FOUND") return null;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed.abort(new LongshoreError("LONGSHORE_CLOSED", `${this.name} was closed.`));
    await (await this.#client)?.close();
  }

  get #reading(): string {
    return `reading parts from ${this.name}`;
  }

  async #pages(consumer: Attempt, positions: readonly SourcePosition[], signal: AbortSignal): Promise<readonly SourcePage[]> {
    const sources = positions.map(({ node, after }) => ({ node_id: node, after }));
    const body = JSON.stringify({ ...attemptBody(consumer), sources, wait_ms: waitMs });
    const client = await this.#open();
    const answer = (await client.call({ method: "POST", path: `${httpBase}/artifacts/read`, body, waitMs, signal })) as {
      sources: WirePage[];
    };
    return answer.sources.map(({ node_id, after, ended, parts }) => ({
      ...{ node: node_id, after, ended },
      parts: parts.map(({ batch_uid, meta }) => ({ uid: batch_uid, meta })),
    }));
  }

  async #accepted(path: string, body: string | Buffer): Promise<boolean> {
    const client = await this.#open();
    const answer = await client.call({ method: "POST", path: `${httpBase}/artifacts${path}`, body });
    return (answer as { accepted?: unknown }).accepted === true;
  }

  async #get(path: string): Promise<JsonObject> {
    const client = await this.#open();
    return (await client.call({ method: "GET", path: httpBase + path })) as JsonObject;
  }

  #open(): Promise<JsonClient> {
    const { token, connections = connectionsDefault } = this.#options;
    this.#client ??= JsonClient.open({ url: this.#url, token, connections });
    return this.#client;
  }
}

interface WirePage {
  readonly node_id: string;
  readonly after: number;
  readonly ended: SourcePage["ended"];
  readonly parts: readonly { readonly batch_uid: string; readonly meta: JsonObject }[];
}

function attemptBody({ taskId, nodeId, epoch, workerId }: Attempt): JsonObject {
  return { task_id: taskId, node_id: nodeId, attempt_epoch: epoch, worker_id: workerId };
}

/** The body is lines of JSON: the common fields first, then the meta of each part. So each meta is serialised and parsed only once. */
function partialsBody(attempt: Attempt, parts: readonly { readonly uid: string; readonly json: Stretch }[]): Buffer {
  const head = Buffer.from(JSON.stringify({ ...attemptBody(attempt), batch_uids: parts.map(({ uid }) => uid) }));
  const bytes = parts.reduce((sum, { json: { from, to } }) => sum + 1 + to - from, head.length);
  const body = Buffer.allocUnsafe(bytes);
  let at = head.copy(body);
  for (const { json } of parts) {
    body[at++] = newline;
    at += json.bytes.copy(body, at, json.from, json.to);
  }
  return body;
}

const newline = 0x0a;

function nodeQuery(taskId: string, nodeId: string): string {
  return new URLSearchParams({ task_id: taskId, node_id: nodeId }).toString();
}

function statePath(workerId: string): string {
  return `/artifacts/workers/${encodeURIComponent(workerId)}/state`;
}
