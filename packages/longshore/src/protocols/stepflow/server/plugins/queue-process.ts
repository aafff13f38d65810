// The worker process of a queue. It is started with the address of its queue, and then pulls tasks. It is restarted when it ends. It is
// also restarted when a task of its queue was lost and no worker holds another one: then the process runs but does not work.

import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Launch } from "../config/config.ts";
import { type QueuePlugin, queueLane, queueOf } from "../config/queues.ts";
import { queueEnvironment } from "./environment.ts";
import type { PluginHost } from "./host.ts";
import { Keeper, type Kept } from "./keeper.ts";
import { type PluginProcess, startProcess } from "./process.ts";
import { findProgram } from "./program.ts";

/** After a start, the worker has this time to connect and claim a task. A task that is lost earlier causes no restart. */
const settleMs = 30_000;

export class QueueProcess {
  readonly #plugin: QueuePlugin & { readonly launch: Launch };
  readonly #host: PluginHost;
  readonly #address: string;
  readonly #keeper: Keeper<PluginProcess>;
  /** Tasks of the queue that are in progress. */
  readonly #held = new Set<string>();
  #startedMs = 0;
  #lastProblem: string | null = null;
  #unlisten = () => {};

  /** `address` is the server's address for the worker. */
  constructor(plugin: QueuePlugin & { readonly launch: Launch }, host: PluginHost, address: string) {
    this.#plugin = plugin;
    this.#host = host;
    this.#address = address;
    this.#keeper = new Keeper<PluginProcess>({
      clock: host.clock,
      begin: () => this.#begin(),
      down: (why, againMs) => this.#down(why, againMs),
    });
  }

  start(): void {
    const queue = queueOf(this.#plugin, {});
    const lane = queue === null ? null : queueLane(queue);
    if (lane !== null) {
      this.#unlisten = this.#host.listen({
        task: (task) => {
          if (task.lane?.name === lane) this.#changed(task);
        },
      });
    }
    this.#keeper.start();
  }

  async close(): Promise<void> {
    this.#unlisten();
    await this.#keeper.stop();
  }

  async #begin(): Promise<Kept<PluginProcess>> {
    const { directory, clock, log, groups, environment } = this.#host;
    const { name, launch } = this.#plugin;
    const env = queueEnvironment(this.#plugin, this.#address, environment);
    const program = findProgram(launch.command, { plugin: name, directory, path: env.PATH });
    const process = startProcess({ plugin: name, program, args: launch.args, env, directory, clock, log, groups });
    this.#startedMs = clock.now();
    log.info(`The worker of the plugin ${name} was started`, { pid: process.pid });
    const ended = process.ended.then((how) => (process.tail === "" ? how : `${how}; its last output:\n${process.tail}`));
    return { value: process, ended, stop: () => process.stop() };
  }

  #down(why: string, againMs: number): void {
    const message = `The worker of the plugin ${this.#plugin.name} has ended: ${why}`;
    if (this.#lastProblem === why) this.#host.log.debug(message, { againMs });
    else this.#host.log.error(message, { againMs });
    this.#lastProblem = why;
  }

  #changed(task: TaskRow): void {
    if (task.state === "held" || task.state === "cancelling") this.#held.add(task.id);
    else this.#held.delete(task.id);
    const wasLost = task.closedBy === "expire" && (task.state === "queued" || task.state === "failed");
    if (!wasLost || this.#held.size > 0) return;
    const process = this.#keeper.value;
    if (process === null || this.#host.clock.now() - this.#startedMs < settleMs) return;
    void this.#keeper.replace(process, "a task of its queue was lost");
  }
}
