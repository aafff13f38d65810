// Our own artifact store over HTTP, for worker/artifacts/http.ts. wire/artifacts/README.md lists the bodies.

import type { Action } from "../../../../core/actions.ts";
import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import { partBytesMax } from "../../../../engine/part/store.ts";
import type { HttpReply, HttpRequest, Route } from "../../../../net/http/http.ts";
import { type Attempt, partsMax } from "../../wire/artifacts/artifacts.ts";
import type { SourcePage } from "../../wire/artifacts/pages.ts";
import { type ActiveRun, httpBase } from "../../wire/shapes.ts";
import {
  badField,
  bodyOf,
  checkObjects,
  jsonReply,
  linesOf,
  listIn,
  objectIn,
  objectOf,
  queryText,
  textIn,
  textsIn,
  wholeIn,
} from "../request.ts";
import type { PartArtifacts } from "./part-artifacts.ts";

export interface ArtifactRoutesDeps {
  readonly artifacts: PartArtifacts;
  readonly clock: Clock;
  /** Called with the number of batches that were just stored. */
  kept?(batches: number): void;
}

/** The limit of the body of a call: its values, and room for their names and the other fields. */
const bodyMax = partBytesMax + 1_048_576;
/** Maximum number of sources of one node. Each is read for every wake-up. */
const sourcesMax = 1_000;
/** Maximum wait, below the timeouts of proxies. */
const waitMsMax = 30_000;
/** Maximum number of sources of all waiting readers together, because each change of a source wakes its readers. Most have one to three. */
const watchedMax = 100_000;

export interface ArtifactRoutes {
  readonly routes: readonly Route[];
  /** Answers all waiting readers. */
  dismiss(): void;
}

export function artifactRoutes(deps: ArtifactRoutesDeps): ArtifactRoutes {
  const waiting = new Waiting(deps.clock);
  return { routes: routesOf(deps, waiting), dismiss: () => waiting.dismiss() };
}

function routesOf(artifactParts: ArtifactRoutesDeps, waiting: Waiting): Route[] {
  const { artifacts } = artifactParts;
  return [
    putPartials(artifactParts),
    route("POST", "/complete", "part.write", async (request) => {
      const body = bodyOf(request);
      return accepted(await artifacts.complete(attemptIn(body), objectIn(body, "meta")));
    }),
    route("GET", "/complete", "task.look", async (request) => {
      return jsonReply({ complete: await artifacts.isComplete(queryText(request, "task_id"), queryText(request, "node_id")) });
    }),
    route("POST", "/read", "part.read", async (request) => {
      const { waitMs, positions, consumer } = readingIn(bodyOf(request));
      // A caller that may read runs needs no hold.
      if (!request.caller.may("run.read") && !(await artifacts.isHeld(consumer))) throw notHeld(consumer);
      const read = (signal: AbortSignal) => artifacts.pages(consumer, positions, signal);
      const pages = await waiting.within({ ms: waitMs, sources: positions.length, gone: request.gone }, read);
      return jsonReply(pagesText(pages));
    }),
    route("POST", "/finish", "part.write", async (request) => {
      const body = bodyOf(request);
      const parts = listIn(body, "parts", partsMax).map((part, at) => ({
        fromNode: textIn(part, "from_node", `parts[${at}].`),
        uid: textIn(part, "batch_uid", `parts[${at}].`),
      }));
      return accepted(await artifacts.finish(attemptIn(body), parts));
    }),
    route("GET", "/cancelled", "task.look", async (request) => {
      return jsonReply({ cancelled: await artifacts.cancelled(queryText(request, "task_id"), queryText(request, "node_id")) });
    }),
    route("GET", "/epoch", "task.look", async (request) => {
      return jsonReply({ attempt_epoch: await artifacts.epochOf(queryText(request, "task_id"), queryText(request, "node_id")) });
    }),
    route("GET", "/workers/:worker/state", "worker.sign", async ({ params }) => {
      return jsonReply({ active_run: await artifacts.loadState(params.worker as string) });
    }),
    route("PUT", "/workers/:worker/state", "worker.sign", async (request) => {
      await artifacts.saveState(request.params.worker as string, activeRunIn(bodyOf(request)));
      return jsonReply({});
    }),
  ];
}

/** Stores parts: the first line is the attempt, then one line for each part. */
function putPartials({ artifacts, kept }: ArtifactRoutesDeps): Route {
  const put = async (request: HttpRequest): Promise<HttpReply> => {
    const [first = "", ...metas] = linesOf(request, partsMax + 1);
    const head = objectOf(first, "The first line");
    const uids = textsIn(head, "batch_uids", partsMax);
    if (metas.length !== uids.length) {
      throw badField("The number of lines after the first", metas.length, `${uids.length}, one for each of batch_uids`);
    }
    // Stored as received; parsed only to check it.
    await checkObjects(metas, (at) => `The meta of batch_uids[${at}]`);
    const parts = uids.map((uid, at) => ({ uid, value: metas[at] as string }));
    const taken = await artifacts.putTexts(attemptIn(head), parts);
    if (taken) kept?.(parts.length);
    return accepted(taken);
  };
  return { ...route("POST", "/partials", "part.write", put), countsValues: true };
}

function route(method: Route["method"], path: string, action: Action, handle: (request: HttpRequest) => Promise<HttpReply>): Route {
  return { method, path: `${httpBase}/artifacts${path}`, action, body: method === "GET" ? "none" : "text", bodyMax, handle };
}

function accepted(value: boolean): HttpReply {
  return jsonReply({ accepted: value });
}

function notHeld({ taskId, nodeId, epoch, workerId }: Attempt): LongshoreError {
  const attempt = `attempt ${epoch} of node ${JSON.stringify(nodeId)} in task ${JSON.stringify(taskId)}`;
  const message = `Worker ${JSON.stringify(workerId)} does not hold ${attempt}: a worker reads for a node that it holds.`;
  return new LongshoreError("LONGSHORE_UNAUTHORIZED", message);
}

/** A separate function, so that a waiting request keeps nothing else of the body. */
function readingIn(body: JsonObject) {
  const positions = listIn(body, "sources", sourcesMax).map((source, at) => ({
    node: textIn(source, "node_id", `sources[${at}].`),
    after: wholeIn(source, "after", { fallback: 0, where: `sources[${at}].` }),
  }));
  return { waitMs: wholeIn(body, "wait_ms", { max: waitMsMax, fallback: 0 }), positions, consumer: attemptIn(body) };
}

function attemptIn(body: JsonObject): Attempt {
  return {
    taskId: textIn(body, "task_id"),
    nodeId: textIn(body, "node_id"),
    epoch: wholeIn(body, "attempt_epoch"),
    workerId: textIn(body, "worker_id"),
  };
}

const runStates: readonly unknown[] = ["running", "finishing", "cancelling"];

function activeRunIn(body: JsonObject): ActiveRun | null {
  const value = body.active_run ?? null;
  if (value === null) return null;
  const run = objectIn(body, "active_run");
  const where = "active_run.";
  if (!runStates.includes(run.state)) throw badField(`${where}state`, run.state, `one of ${runStates.join(", ")}`);
  const text = (field: string) => textIn(run, field, where);
  return {
    ...{ task_id: text("task_id"), node_id: text("node_id"), step_type: text("step_type"), lease_id: text("lease_id") },
    cancel_token: typeof run.cancel_token === "string" ? run.cancel_token : "",
    attempt_epoch: wholeIn(run, "attempt_epoch", { where }),
    started_at_ms: wholeIn(run, "started_at_ms", { where }),
    state: run.state as ActiveRun["state"],
    checkpoint: objectIn(run, "checkpoint", where),
  };
}

/** The waiting requests. */
class Waiting {
  readonly #clock: Clock;
  /** The functions that answer them, oldest first, with the number of their sources. */
  readonly #ends = new Map<() => void, number>();
  #watched = 0;
  #dismissed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls with a signal that aborts after `ms`, when the client disconnects, or when others need the room. With 0 it does not wait. */
  async within<T>({ ms, sources, gone }: Wait, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const end = () => over.abort();
    if (ms === 0 || this.#dismissed || gone.aborted) end();
    const disarm = this.#clock.at(this.#clock.now() + ms, end);
    gone.addEventListener("abort", end, { once: true });
    this.#ends.set(end, sources);
    this.#watched += sources;
    this.#makeRoom();
    try {
      return await call(over.signal);
    } finally {
      disarm();
      gone.removeEventListener("abort", end);
      this.#forget(end);
    }
  }

  dismiss(): void {
    this.#dismissed = true;
    for (const end of [...this.#ends.keys()]) end();
  }

  /** Answers the readers that have waited longest, so that no caller keeps others from waiting. */
  #makeRoom(): void {
    for (const end of this.#ends.keys()) {
      if (this.#watched <= watchedMax) return;
      this.#forget(end);
      end();
    }
  }

  #forget(end: () => void): void {
    this.#watched -= this.#ends.get(end) ?? 0;
    this.#ends.delete(end);
  }
}

interface Wait {
  readonly ms: number;
  /** The number of sources that the reader watches. */
  readonly sources: number;
  readonly gone: AbortSignal;
}

/**
 * The values are JSON texts, which are inserted unchanged. A value that is not an object is put into one, because consumers accept only
 * objects.
 */
function pagesText(pages: readonly SourcePage<{ readonly uid: string; readonly value: string }>[]): string {
  const sources = pages.map(({ node, after, ended, parts }) => {
    const members = parts.map(({ uid, value }) => {
      const meta = value.startsWith("{") ? value : `{"result":${value}}`;
      return `{"batch_uid":${JSON.stringify(uid)},"meta":${meta}}`;
    });
    return `{"node_id":${JSON.stringify(node)},"after":${after},"ended":${JSON.stringify(ended)},"parts":[${members.join(",")}]}`;
  });
  return `{"sources":[${sources.join(",")}]}`;
}
