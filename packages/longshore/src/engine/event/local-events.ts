// Events, in the process that owns the data: the runs of an event start, and its tasks are posted, in one transaction.

import { createHash } from "node:crypto";
import { LongshoreError } from "../../core/errors.ts";
import { matches } from "../../core/event-trigger.ts";
import { idOfUuid } from "../../core/ids.ts";
import type { Json } from "../../core/json/json.ts";
import type { LocalBoard } from "../board/local-board.ts";
import { looseTask } from "../board/loose-task.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore } from "../rows.ts";
import type { LocalRuns } from "../run/local-runs.ts";
import { rootFrom } from "../run/run.ts";
import type { Tx } from "../tx.ts";
import { eventTaskPrefix, FamilyEvents } from "./local-families.ts";
import {
  type EventStore,
  eventCopiesCharsMax,
  type NewEvent,
  type StartedByEvent,
  type SubscribedEvent,
  type Subscriber,
} from "./store.ts";

/** A start takes as long as about so many small steps of a transaction. */
const startSteps = 1_000;

/** A subscriber that cannot do its work now may be able to a moment later. */
const subscriberRetry = { limit: 3, backoff: { kind: "exponential", delayMs: 1_000, factor: 4 } } as const;

export interface EventsOptions {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly runs: LocalRuns;
  readonly board: Pick<LocalBoard, "postNow">;
  /** Whether the current request may have been performed before, with the same ids. Default: never. */
  readonly isRepeat?: () => boolean;
  /** Replaces the limit in tests. */
  readonly familyTasksMax?: number;
}

export class LocalEvents implements EventStore {
  readonly #commit: GroupCommit;
  readonly #runs: LocalRuns;
  readonly #board: Pick<LocalBoard, "postNow">;
  readonly #isRepeat: () => boolean;
  readonly #families: FamilyEvents;

  constructor({ store, commit, runs, board, isRepeat = () => false, familyTasksMax }: EventsOptions) {
    this.#commit = commit;
    this.#runs = runs;
    this.#board = board;
    this.#isRepeat = isRepeat;
    this.#families = new FamilyEvents(store, familyTasksMax);
  }

  async emit({ name, payload, key, runId }: NewEvent, makeId: () => string): Promise<readonly StartedByEvent[]> {
    const parsed = JSON.parse(payload) as Json;
    const isRepeat = this.#isRepeat();
    // An operation may run again, and in the context of another request. So the ids are made before it.
    const listening = await this.#commit.read((tx) => this.#runs.triggers.listeners(tx, name));
    const ids = new Map(listening.map(({ workflow }) => [workflow, makeId()]));
    return this.#commit.run((tx) => {
      const sender = runId === undefined ? null : this.#runs.runs.get(tx, idOfUuid(runId) ?? runId);
      const rootId = sender === null ? undefined : rootFrom(sender);
      const subscribers = this.#runs.triggers.subscribers(tx, name);
      const matching = this.#runs.triggers.listeners(tx, name).filter((listener) => matches(listener, parsed));
      const workflows = new Set(matching.map(({ workflow }) => workflow));
      refuseCopies(name, payload, workflows.size + subscribers.length);
      const started: StartedByEvent[] = [];
      for (const workflow of workflows) {
        const definition = this.#runs.definitions.newest(tx, workflow);
        if (definition === null) continue;
        tx.spend(startSteps);
        // The key makes the event one start of each workflow, also when a request is performed again.
        const id = ids.get(workflow) ?? makeId();
        const once = { key: `event ${name} ${key}`, sameInput: true };
        const start = { id, workflow, definitionId: definition.id, input: payload, rootId: rootId ?? null, ...once };
        const { run, created } = this.#runs.startNow(tx, start);
        // A request that is performed again finds the run that it has started.
        started.push({ run, created: created || (isRepeat && run.id === id) });
      }
      this.#post(tx, subscribers, { event: name, key, ...(rootId === undefined ? {} : { rootId }) }, payload);
      return started;
    });
  }

  subscribe(event: string, subscriber: Subscriber): Promise<void> {
    return this.#commit.run((tx) => this.#runs.triggers.subscribe(tx, event, subscriber));
  }

  unsubscribe(event: string, subscriber: Subscriber): Promise<void> {
    return this.#commit.run((tx) => this.#runs.triggers.unsubscribe(tx, event, subscriber));
  }

  #post(tx: Tx, subscribers: readonly Subscriber[], event: Omit<SubscribedEvent, "subscriber" | "payload">, payload: string): void {
    if (event.rootId !== undefined && subscribers.length > 0) this.#families.admit(tx, event.rootId);
    const tasks = subscribers.map(({ lane, name }) => {
      const named: Omit<SubscribedEvent, "payload"> = { ...event, subscriber: name };
      // The id makes the event one task of each subscriber, also when a request is performed again.
      const id = createHash("sha256")
        .update(JSON.stringify([event.event, event.key, lane, name]))
        .digest("hex")
        .slice(0, 32);
      return looseTask({
        id: `${eventTaskPrefix(event.rootId)}${id}`,
        task: lane,
        // The text of the payload is copied as it is, with all digits of its numbers.
        input: `${JSON.stringify(named).slice(0, -1)},"payload":${payload}}`,
        retry: subscriberRetry,
      });
    });
    if (tasks.length > 0) this.#board.postNow(tx, tasks);
  }
}

function refuseCopies(event: string, payload: string, copies: number): void {
  if (payload.length * (copies - 1) <= eventCopiesCharsMax) return;
  const message = `The payload of the event ${event} has ${payload.length} characters, and ${copies} workflows and handlers get a copy each: store it as a blob, and send its hash.`;
  const expected = `at most ${eventCopiesCharsMax} characters in all copies besides the first`;
  throw new LongshoreError("LONGSHORE_LIMIT", message, { detail: { field: "payload", expected } });
}
