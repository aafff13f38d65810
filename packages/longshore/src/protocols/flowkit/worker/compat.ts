// The worker API of FlowKit's reference implementation: `new Worker({ db, cfg, handlers })`, then `await worker.start()`. This file builds it
// on `work()`.

import type { Bus } from "../../../core/bus/bus.ts";
import type { Clock } from "../../../core/clock.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { Logger } from "../../../runner/notices.ts";
import { type WorkHandle, work } from "../../../work.ts";
import type { ArtifactStore } from "../wire/artifacts/artifacts.ts";
import { EchoHandler } from "./echo.ts";
import { type RoleHandler, streamHandlerOf } from "./handler.ts";
import { checkServed, type FlowkitOptions, isArtifactStore } from "./options.ts";
import { streamTask } from "./stream-task.ts";
import { flowkit } from "./worker.ts";
import { WorkerConfig } from "./worker-config.ts";

/** The arguments of `new Worker()`. */
export interface WorkerInit extends Pick<FlowkitOptions, "kafka" | "adapters" | "log" | "token"> {
  /** A `Db` of the `mongodb` package, the address of a Longshore server, or an artifact store. */
  readonly db: object | string | ArtifactStore;
  readonly cfg?: WorkerConfig;
  /** By role. */
  readonly handlers?: { readonly [role: string]: RoleHandler };
  /** Concurrent runs. Default: 1, as in the reference. */
  readonly slots?: number;
  /** Replaces Kafka. */
  readonly bus?: Bus;
  readonly clock?: Clock;
  readonly logger?: Logger | false;
}

/** A worker with the API of the reference implementation. */
export class Worker implements AsyncDisposable {
  readonly cfg: WorkerConfig;
  readonly #init: WorkerInit;
  #starting: Promise<WorkHandle> | undefined;

  constructor(init: WorkerInit) {
    this.#init = init;
    this.cfg = init.cfg ?? new WorkerConfig();
    if (init.db === undefined || init.db === null) {
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", "db is absent, expected a database, or the url of a Longshore server.", {
        detail: { field: "db" },
      });
    }
  }

  /** Resolves when the worker takes commands. Further calls have no effect. */
  async start(): Promise<void> {
    this.#starting ??= this.#start();
    await this.#starting;
  }

  /** Finishes the running batches, hands back the rest, and announces that the worker leaves. */
  async stop(): Promise<void> {
    const handle = await this.#starting?.catch(() => undefined);
    this.#starting = undefined;
    await handle?.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #start(): Promise<WorkHandle> {
    const { slots = 1, clock, logger } = this.#init;
    const on = flowkit(this.#options());
    const handlers: { readonly [role: string]: RoleHandler | undefined } = { echo: new EchoHandler(), ...this.#init.handlers };
    const known = Object.keys(handlers).filter((role) => handlers[role] !== undefined);
    checkServed(this.cfg.roles, known);
    return work({
      tasks: known
        .filter((role) => this.cfg.roles.includes(role))
        .map((role) => streamTask(role, streamHandlerOf(handlers[role] as RoleHandler))),
      on,
      slots,
      // The program handles signals itself, as with the reference.
      signals: false,
      ...(clock === undefined ? {} : { clock }),
      ...(logger === undefined ? {} : { logger }),
    });
  }

  #options(): FlowkitOptions {
    const { db, kafka, adapters, log, token, bus } = this.#init;
    const { cfg } = this;
    const options: FlowkitOptions = {
      ...cfg.options(),
      ...(kafka === undefined ? {} : { kafka }),
      ...(adapters === undefined ? {} : { adapters }),
      ...(log === undefined ? {} : { log }),
      ...(token === undefined ? {} : { token }),
    };
    const brokers = bus === undefined ? { brokers: cfg.kafka_bootstrap } : { bus };
    // A Longshore server is the store and also the bus, unless the options name another bus.
    if (typeof db === "string") return { ...options, url: db, ...(bus !== undefined || cfg.given.has("kafka_bootstrap") ? brokers : {}) };
    return isArtifactStore(db) ? { ...options, ...brokers, artifacts: db } : { ...options, ...brokers, mongo: db };
  }
}
