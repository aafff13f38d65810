// Carries out the messages between runs, one after the other, and finds out which run a start message must start.

import type { Clock } from "../../core/clock.ts";
import { isClosing, isTransient, LongshoreError, toError } from "../../core/errors.ts";
import type { FailureListener } from "../../core/failure-listener.ts";
import type { MakeId } from "../../core/ids.ts";
import type { CodeDefinition } from "../../core/workflow-family.ts";
import { dialectOf } from "./brain.ts";
import { CarriedMessages } from "./carried-messages.ts";
import type { ChildDefinition, Dialect } from "./dialect.ts";
import type { Message, StartRun, StoredMessage } from "./run.ts";
import type { NewChild, RunStore } from "./store.ts";

/** Returns what to start under this id. The run has named it in the format of its dialect. */
export type Starter = (message: Message & { kind: "start-run" }, id: string) => Promise<NewChild>;

/** Delay before a message that could not be carried out is tried again. */
const retryMs = 1_000;
/** The name of this activity in the log. */
const messages = "carrying out a message between runs";

export interface MessageLoopDeps {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly makeId: MakeId;
  readonly trouble: FailureListener | undefined;
  readonly dialects: ReadonlyMap<string, Dialect>;
  /** Stores a definition that a message brings. */
  define(definition: { name: string; dialect: string; source: string; id?: string }): Promise<unknown>;
}

export class MessageLoop {
  readonly #deps: MessageLoopDeps;
  readonly #carried: CarriedMessages;
  readonly #starters = new Map<string, Starter>();
  #carrying: Promise<void> | null = null;
  #moreLeft = false;
  #closed = false;

  constructor(deps: MessageLoopDeps) {
    this.#deps = deps;
    this.#carried = new CarriedMessages(deps.clock);
  }

  /** Sets the starter for runs that name what to start in the format of this dialect. Must be called before any message is carried out. */
  startsFor(dialect: string, starter: Starter): void {
    this.#starters.set(dialect, starter);
  }

  /** Carries out all messages. A call while this is in progress makes it look for new messages at the end. */
  carry(): void {
    this.#moreLeft = true;
    if (this.#carrying !== null || this.#closed) return;
    this.#carrying = this.#carryAll().finally(() => {
      this.#carrying = null;
      if (!this.#moreLeft) this.#carried.stopped();
      if (this.#moreLeft) this.carry();
    });
  }

  /** Resolves when the cancels that are stored now are carried out, or when messages are not being carried out any more. */
  cancelsCarried(): Promise<void> {
    return this.#carried.wait(
      () => this.#deps.store.newestCancel(),
      () => this.#carrying !== null,
    );
  }

  /** Resolves when the message that is being carried out is done. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#carrying;
  }

  async #carryAll(): Promise<void> {
    while (this.#moreLeft && !this.#closed) {
      this.#moreLeft = false;
      try {
        await this.#carryOnce();
        this.#deps.trouble?.working(messages);
      } catch (error) {
        // The store cannot be written now, or has been closed, or a message is stuck. Messages are durable, so they are only delayed.
        if (!isTransient(error) && !isClosing(error)) this.#deps.trouble?.failing(messages, error);
        this.#deps.clock.at(this.#deps.clock.now() + retryMs, () => this.carry());
        return;
      }
    }
  }

  async #carryOnce(): Promise<void> {
    const stuck = new Map<number, unknown>();
    for (let carried = true; carried && !this.#closed; ) {
      carried = false;
      for await (const stored of this.#storedMessages()) {
        if (stuck.has(stored.id)) continue;
        try {
          await this.#deliver(stored);
          carried = true;
          this.#carried.reached(stored.id);
        } catch (error) {
          if (isTransient(error) || isClosing(error)) throw error;
          // A message that cannot be carried out, such as a start in an unknown dialect, does not block the others.
          stuck.set(stored.id, error);
        }
      }
    }
    for (const error of stuck.values()) throw error;
  }

  /** All messages in order, page by page: stuck messages must not hide the ones behind them. */
  async *#storedMessages(): AsyncGenerator<StoredMessage, void, void> {
    let page = await this.#deps.store.messages();
    for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
      yield* page;
      page = await this.#deps.store.messages(last.id);
    }
  }

  async #deliver(stored: StoredMessage): Promise<void> {
    const { message } = stored;
    await this.#deps.store.deliver(stored, message.kind === "start-run" ? await this.#childFor(message) : null);
  }

  async #childFor(message: Message & { kind: "start-run" }): Promise<NewChild> {
    const id = message.runId ?? this.#deps.makeId(this.#deps.clock.now());
    const { workflow, input } = message;
    if (message.definition !== undefined) return this.#madeChild(message, message.definition, id);
    if (workflow === null) {
      const starter = this.#starters.get(message.dialect);
      if (starter === undefined)
        throw new LongshoreError("LONGSHORE_NOT_FOUND", `This server has no starter for runs of ${message.dialect} yet.`);
      try {
        return await starter(message, id);
      } catch (error) {
        if (isRefusal(error)) return { failed: toError(error).message };
        throw error;
      }
    }
    const refused = await this.#defineMissing(message.defines ?? []);
    if (refused !== undefined) return { failed: refused };
    const definition = await this.#deps.store.definition(workflow);
    return definition === undefined ? { failed: `there is no workflow ${workflow}` } : { id, definitionId: definition.id, workflow, input };
  }

  /** Stores what workers report with a child run. Returns why a definition is refused. */
  async #defineMissing(definitions: readonly CodeDefinition[]): Promise<string | undefined> {
    for (const { name, dialect, source } of definitions) {
      if ((await this.#deps.store.definition(name)) !== undefined) continue;
      try {
        const { checkReported } = dialectOf(this.#deps.dialects, dialect);
        if (checkReported === undefined) throw notForWorkers(name, dialect);
        await checkReported(name, source);
        await this.#deps.define({ name, dialect, source });
      } catch (error) {
        if (isRefusal(error)) return toError(error).message;
        throw error;
      }
    }
    return undefined;
  }

  /** A definition with this id is the same one. */
  async #madeChild(
    { dialect, input }: StartRun,
    { id: definitionId, source, workflow, priority }: ChildDefinition,
    id: string,
  ): Promise<NewChild> {
    if ((await this.#deps.store.definitionById(definitionId)) === undefined)
      await this.#deps.define({ id: definitionId, name: `.${definitionId}`, dialect, source });
    return { id, definitionId, workflow, input, priority };
  }
}

/** True when the run can never be started: the step that waits for it fails. */
function isRefusal(error: unknown): boolean {
  if (error instanceof LongshoreError) return ["LONGSHORE_BAD_INPUT", "LONGSHORE_BAD_DEFINITION"].includes(error.code);
  // The starter received unexpected data.
  return (error instanceof TypeError || error instanceof RangeError) && !isTransient(error);
}

function notForWorkers(name: string, dialect: string): LongshoreError {
  const message = `Workflow ${name} came from a worker, and workers define no workflows of the dialect ${dialect}. Define it with an operator token.`;
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field: "defines" } });
}
