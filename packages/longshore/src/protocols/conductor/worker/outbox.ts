// Results that the server has not accepted. They are stored on disk and sent again until the server accepts them: at the start, and every
// half minute. A result is stored after its first failed try, so that nothing is lost when the process is killed. Its sender makes some
// more tries before the outbox does. Sending twice is harmless: a server ignores results of finished tasks.

import type { Clock } from "../../../core/clock.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { Notice } from "../../../runner/notices.ts";
import { updateAnswer } from "../wire/codes.ts";
import { type Answer, quote, unexpected } from "./client.ts";
import { discard, type Kept, OutboxFile } from "./outbox-file.ts";

/** Delay before results that the server has not accepted are sent again. */
const replayMs = 30_000;
/**
 * Maximum number of stored results; further ones are not stored. By then the server has been unreachable for so long that its tasks have
 * timed out.
 */
const entriesMax = 10_000;
const bytesMax = 64 * 1024 * 1024;
/** The file is rewritten when this many of its lines are obsolete, and at least as many as are still needed. */
const droppedMax = 1_000;
/** Older results are dropped, because no task waits for so long. */
const ageMsMax = 7 * 24 * 3_600_000;

export interface OutboxOptions {
  readonly folder: string;
  /** Results are sent only to the server they belong to. */
  readonly server: string;
  readonly clock: Clock;
  readonly send: (body: string, signal: AbortSignal) => Promise<Answer>;
  readonly notice: (notice: Notice) => void;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
}

interface Entry extends Kept {
  /** The sender of the result is still trying, so the outbox must not send it yet. */
  busy: boolean;
}

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #file: OutboxFile;
  readonly #entries = new Map<string, Entry>();
  readonly #stopped = new AbortController();
  #bytes = 0;
  /** Lines of the file that have no effect any more. */
  #dropped = 0;
  #disarm: () => void = () => {};
  #replaying: Promise<void> | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#file = new OutboxFile(options.folder, options.server);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Starts to send results of earlier processes. */
  start(): void {
    void this.#replay();
  }

  /** Resolves when the result is on disk, or could not be written. A second call changes nothing. */
  async keep(taskId: string, body: string): Promise<void> {
    if (this.#entries.has(taskId)) return;
    await this.#add({ taskId, body, atMs: this.#options.clock.now(), busy: true });
  }

  /** The server has accepted the result. */
  async drop(taskId: string): Promise<void> {
    const entry = this.#entries.get(taskId);
    if (entry === undefined) return;
    this.#entries.delete(taskId);
    this.#bytes -= entry.body.length;
    if (this.#entries.size === 0) {
      this.#dropped = 0;
      return this.#onDisk(this.#file.remove());
    }
    if (++this.#dropped < Math.max(droppedMax, this.#entries.size)) return this.#onDisk(this.#file.drop(taskId));
    this.#dropped = 0;
    await this.#onDisk(this.#file.rewrite([...this.#entries.values()]));
  }

  /** The sender of the result has given up: from now on the outbox sends it. */
  release(taskId: string): void {
    const entry = this.#entries.get(taskId);
    if (entry === undefined) return;
    entry.busy = false;
    this.#arm();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#disarm();
    await this.#replaying;
    await this.#onDisk(this.#file.leave());
  }

  async #add(entry: Entry): Promise<void> {
    if (this.#entries.size >= entriesMax || this.#bytes + entry.body.length > bytesMax) {
      const message = `${this.#entries.size} results are kept already, so the one of task ${entry.taskId} is not kept.`;
      return this.#options.failing("outbox", new LongshoreError("LONGSHORE_LIMIT", message));
    }
    this.#entries.set(entry.taskId, entry);
    this.#bytes += entry.body.length;
    await this.#onDisk(this.#file.keep(entry));
  }

  #arm(): void {
    const { clock } = this.#options;
    this.#disarm();
    if (this.#stopped.signal.aborted) return;
    this.#disarm = clock.at(clock.now() + replayMs, () => void this.#replay());
  }

  /** Sends one after the other, oldest first, until the server fails; the rest waits for the next time. */
  #replay(): Promise<void> {
    this.#disarm();
    this.#replaying ??= this.#sendAll()
      .catch((error) => this.#options.failing("outbox", error))
      .finally(() => {
        this.#replaying = undefined;
        this.#arm();
      });
    return this.#replaying;
  }

  async #sendAll(): Promise<void> {
    await this.#adopt();
    const waiting = [...this.#entries.values()].filter((entry) => !entry.busy).sort((one, other) => one.atMs - other.atMs);
    for (const entry of waiting) if (this.#stopped.signal.aborted || !(await this.#send(entry))) return;
  }

  async #adopt(): Promise<void> {
    const { kept, paths } = await this.#file.adopt();
    for (const entry of kept) if (!this.#entries.has(entry.taskId)) await this.#add({ ...entry, busy: false });
    await this.#onDisk(discard(paths));
  }

  /** Returns false when the server cannot be reached now. */
  async #send(entry: Entry): Promise<boolean> {
    const { clock, send, notice, failing, working } = this.#options;
    const tell = (why: string) => notice({ level: "warn", message: `The kept result of task ${entry.taskId} is given up: ${why}.` });
    if (clock.now() - entry.atMs > ageMsMax) {
      tell("it is older than a week");
      await this.drop(entry.taskId);
      return true;
    }
    try {
      const answer = await send(entry.body, this.#stopped.signal);
      const meaning = updateAnswer(answer.status, answer.text);
      const unknown = answer.status === 404 && meaning === "failed";
      if (meaning !== "taken" && meaning !== "refused" && !unknown) throw unexpected("a kept result", answer, "200");
      if (meaning !== "taken") tell(`the server answered ${quote(answer)}`);
      else notice({ level: "info", message: `The kept result of task ${entry.taskId} has been taken.` });
      await this.drop(entry.taskId);
      working("outbox");
      return true;
    } catch (error) {
      if (!this.#stopped.signal.aborted) failing("outbox", error);
      return false;
    }
  }

  /** When the disk cannot be written, results are not protected, but the worker continues. */
  async #onDisk(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#options.failing("outbox", error);
    }
  }
}
