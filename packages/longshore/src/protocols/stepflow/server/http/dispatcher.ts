// The server half of Stepflow over HTTP: a plugin whose worker is called. The worker is started, or reached at its address. After the
// handshake the server calls it for each task of the plugin's lane, with at most `callsMax` calls at once.
//
// While the worker cannot be called, steps wait in the lane, up to their queue timeout, and use no retry budget. When a connection breaks
// during a call, only that call is lost. The server then repeats the handshake, because another process may have taken the address. A
// worker that the server has started and that does not answer the handshake is restarted.

import { LongshoreError, toError } from "../../../../core/errors.ts";
import type { Json, JsonObject } from "../../../../core/json/json.ts";
import { type LaneWorker, NotBegun } from "../../../../engine/board/lane-worker.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import { replaceLarge, resolveBlobs } from "../../wire/blob-refs.ts";
import { observabilityJson } from "../../wire/observability.ts";
import { wireTaskId } from "../../wire/task-id.ts";
import type { HttpPlugin, Launch } from "../config/config.ts";
import { pluginLane } from "../config/queues.ts";
import { findComponent, keepComponents, type RegisteredComponent } from "../config/registered-components.ts";
import { type ComponentWork, componentLane, StepFailure } from "../lane.ts";
import type { PluginHost } from "../plugins/host.ts";
import { Keeper, type Kept } from "../plugins/keeper.ts";
import { callComponent, Disconnected, NotInitialized } from "./runtime/call.ts";
import { WorkerClient } from "./runtime/client.ts";
import { launchWorker, untilHealthy } from "./runtime/launch.ts";
import { listComponents, openSession, type Session } from "./runtime/session.ts";

/** One worker, from its start or first handshake to its end. */
interface Worker {
  readonly client: WorkerClient;
  session: Session;
  components: readonly RegisteredComponent[];
  /** The handshake that is being repeated. */
  renewing: Promise<boolean> | null;
  /** Set when its process has ended. The process reports this itself. */
  gone: boolean;
}

/** How long open calls may continue when the server closes. */
const graceMsDefault = 5_000;

export class HttpDispatcher {
  readonly #plugin: HttpPlugin;
  readonly #host: PluginHost;
  readonly #lane: LaneWorker;
  readonly #keeper: Keeper<Worker>;
  readonly #stopped = new AbortController();
  #unlisten = () => {};
  /** The last reported reason for being down: a repeated failure is reported once. */
  #lastProblem: string | null = null;

  constructor(plugin: HttpPlugin, host: PluginHost) {
    this.#plugin = plugin;
    this.#host = host;
    const { board, workers, clock, log } = host;
    this.#lane = componentLane({
      board,
      workers,
      clock,
      lane: pluginLane(plugin),
      holder: `stepflow-http:${plugin.name}`,
      protocol: "stepflow",
      slots: plugin.callsMax,
      perform: (work) => this.#perform(work),
      failed: (what, error) => log.warn(`A ${what} for the plugin ${plugin.name} failed and is tried again`, { error }),
    });
    this.#keeper = new Keeper<Worker>({
      clock,
      begin: (signal) => this.#begin(signal),
      up: (worker) => this.#up(worker),
      down: (why, againMs) => this.#down(why, againMs),
    });
  }

  start(): void {
    this.#unlisten = this.#host.listen({ task: (task: TaskRow) => this.#lane.changed(task) });
    this.#keeper.start();
  }

  async close(graceMs: number = graceMsDefault): Promise<void> {
    await this.#lane.close(graceMs);
    this.#stopped.abort();
    await this.#keeper.stop();
    this.#unlisten();
  }

  /** The current components of the worker. Rejects when it cannot be called. */
  async discover(signal: AbortSignal): Promise<readonly RegisteredComponent[]> {
    const worker = await this.#keeper.ready(signal);
    if (worker === null) throw this.#away();
    await this.#learn(worker, signal);
    return worker.components;
  }

  async #begin(signal: AbortSignal): Promise<Kept<Worker>> {
    const { launch, url } = this.#plugin;
    return launch === null ? this.#dial(url as URL, signal) : this.#launch({ ...this.#plugin, launch }, signal);
  }

  async #dial(url: URL, signal: AbortSignal): Promise<Kept<Worker>> {
    const worker = await this.#connect(url, signal);
    let end: (why: string) => void = () => {};
    const ended = new Promise<string>((resolve) => {
      end = resolve;
    });
    // Open calls on other connections may still finish.
    const stop = async () => {
      end("");
      if (this.#stopped.signal.aborted) await worker.client.close();
      else void worker.client.retire().catch(() => {});
    };
    return { value: worker, ended, stop };
  }

  async #launch(plugin: HttpPlugin & { launch: Launch }, signal: AbortSignal): Promise<Kept<Worker>> {
    const { process, port } = await launchWorker(plugin, this.#host, signal);
    try {
      const worker = await this.#connect(new URL(`http://127.0.0.1:${port}`), signal, (client) =>
        untilHealthy(client, plugin, process, this.#host.clock, signal),
      );
      const stop = async () => {
        await process.stop();
        await worker.client.close();
      };
      const ended = process.ended.then(async (how) => {
        worker.gone = true;
        this.#lane.rest();
        await worker.client.close();
        return process.tail === "" ? how : `${how}; its last output:\n${process.tail}`;
      });
      return { value: worker, ended, stop };
    } catch (error) {
      await process.stop();
      throw error;
    }
  }

  async #connect(url: URL, signal: AbortSignal, healthy?: (client: WorkerClient) => Promise<void>): Promise<Worker> {
    const client = await WorkerClient.open({ url, makeId: () => this.#host.makeId() });
    try {
      await healthy?.(client);
      const session = await openSession(client, { blobs: this.#blobs() }, signal);
      const worker: Worker = { client, session, components: [], renewing: null, gone: false };
      await this.#learn(worker, signal).catch((error) => {
        // The worker can still be called by the path of the step.
        this.#host.log.warn(`The plugin ${this.#plugin.name} does not list its components`, { error: toError(error).message });
      });
      return worker;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  #blobs(): { url: string; threshold: number } | null {
    const { blobApi, url } = this.#host;
    const at = blobApi.url ?? (url === null ? null : `${url}/api/v1/blobs`);
    return blobApi.enabled && at !== null ? { url: at, threshold: blobApi.threshold } : null;
  }

  async #learn(worker: Worker, signal: AbortSignal): Promise<void> {
    worker.components = await listComponents(worker.session, signal);
    await keepComponents(this.#host.documents, pluginLane(this.#plugin), worker.components);
  }

  #up({ session, components }: Worker): void {
    const { log } = this.#host;
    const names = components.map(({ id }) => id);
    this.#lastProblem = null;
    log.info(`The worker of the plugin ${this.#plugin.name} can be called`, { url: session.client.url, dialect: session.dialect, names });
    this.#lane.resume();
  }

  #down(why: string, againMs: number): void {
    this.#lane.rest();
    const { log } = this.#host;
    const message = `The worker of the plugin ${this.#plugin.name} cannot be called: ${why}`;
    if (this.#lastProblem === why) log.debug(message, { againMs });
    else log.error(message, { againMs });
    this.#lastProblem = why;
  }

  async #perform(work: ComponentWork): Promise<Json> {
    await this.#keeper.value?.renewing;
    const worker = this.#keeper.value;
    // The worker disconnected while the task was handed out.
    if (worker === null || worker.gone) throw new NotBegun(this.#away().message);
    try {
      return await this.#call(worker, work);
    } catch (error) {
      if (!(error instanceof NotInitialized)) throw error;
      // The worker has forgotten the handshake, or is another process at the same address.
      if (await this.#renew(worker)) return this.#call(worker, work).catch(asRefusal);
      throw new StepFailure({ code: "UNREACHABLE", message: error.message }, { cause: error });
    }
  }

  async #call(worker: Worker, work: ComponentWork): Promise<Json> {
    const { session } = worker;
    const { clock, log, calls } = this.#host;
    const { task, signal, lend } = work;
    try {
      const params = await this.#params(worker, work);
      const context = { calls, dialect: session.dialect, taskId: task.id, signal, lend };
      const output = await callComponent({ session, handOut: wireTaskId(task), params, context: context, clock, log });
      return await this.#whole(output, session);
    } catch (error) {
      if (error instanceof Disconnected && !signal.aborted) void this.#renew(worker);
      throw error;
    }
  }

  async #params(worker: Worker, { task, component, input }: ComponentWork): Promise<JsonObject> {
    const { blobApi, calls } = this.#host;
    const refs = worker.session.blobRefs && blobApi.enabled && blobApi.threshold > 0;
    return {
      component: nameOf(worker.components, component),
      input: refs ? await replaceLarge(input, blobApi.threshold, (data) => calls.putBlob(data, "data")) : input,
      attempt: task.attempt + 1,
      observability: observabilityJson(await this.#host.observability(task)),
    };
  }

  /** Replaces references in an output by their data, for later steps. The worker has stored this data on this server. */
  async #whole(output: Json, { blobRefs }: Session): Promise<Json> {
    if (!blobRefs) return output;
    const { calls } = this.#host;
    try {
      return await resolveBlobs(output, async (id) => (await calls.getBlob(id)).data);
    } catch (error) {
      throw new StepFailure(
        { code: "WORKER_ERROR", message: `The output cannot be put together: ${toError(error).message}` },
        { cause: error },
      );
    }
  }

  /** Repeats the handshake, once for any number of calls. Returns false when it fails: the worker is then restarted. */
  #renew(worker: Worker): Promise<boolean> {
    worker.renewing ??= this.#renewOnce(worker).finally(() => {
      worker.renewing = null;
    });
    return worker.renewing;
  }

  /** Meanwhile the lane takes no tasks: the lost step must not be sent to a worker that is gone. */
  async #renewOnce(worker: Worker): Promise<boolean> {
    this.#lane.rest();
    try {
      worker.session = await openSession(worker.client, { blobs: this.#blobs() }, this.#stopped.signal);
      if (this.#keeper.value === worker) this.#lane.resume();
      return true;
    } catch (error) {
      if (!this.#stopped.signal.aborted && !worker.gone) await this.#keeper.replace(worker, toError(error).message);
      return false;
    }
  }

  #away(): LongshoreError {
    const why = this.#lastProblem === null ? "" : `: ${this.#lastProblem}`;
    return new LongshoreError("LONGSHORE_UNREACHABLE", `The worker of the plugin ${this.#plugin.name} cannot be called${why}`);
  }
}

/**
 * The name under which the worker listed the component. Workers written by the guide list paths with the route's prefix, but the step's
 * path has no prefix any more. Then the listed path that ends with the step's path is used, if there is only one. An unlisted component is
 * called by its path.
 */
function nameOf(components: readonly RegisteredComponent[], path: string): string {
  const listed = findComponent(components, path)?.component;
  // A component with placeholders is called by the path itself; the worker finds their values.
  if (listed !== undefined) return listed.path.includes("{") ? path : listed.id;
  const [only, another] = components.filter((component) => component.path.endsWith(path));
  return only === undefined || another !== undefined ? path : only.id;
}

/** A second request for the handshake is a mistake of the worker. */
function asRefusal(error: unknown): never {
  if (error instanceof NotInitialized) throw new StepFailure({ code: "WORKER_ERROR", message: error.message }, { cause: error });
  throw error;
}
