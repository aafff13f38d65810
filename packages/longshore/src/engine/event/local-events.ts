// Events, in the process that owns the data: the runs of an event start, and its tasks are posted, in one transaction.

import { createHash } from "node:crypto";
import { matches } from "../../core/event-trigger.ts";
import { idOfUuid } from "../../core/ids.ts";
import type { Json } from "../../core/json/json.ts";
import { writeExact } from "../../core/json/json-exact.ts";
import type { LocalBoard } from "../board/local-board.ts";
import { looseTask } from "../board/loose-task.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore } from "../rows.ts";
import type { LocalRuns } from "../run/local-runs.ts";
import { rootFrom } from "../run/run.ts";
import type { Tx } from "../tx.ts";
import { eventTaskPrefix, FamilyEvents } from "./local-families.ts";
import type { EventStore, NewEvent, StartedByEvent, SubscribedEvent, Subscriber } from "./store.ts";

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
      const started = new Map<string, StartedByEvent>();
      for (const listener of this.#runs.triggers.listeners(tx, name)) {
        const { workflow } = listener;
        const definition = started.has(workflow) || !matches(listener, parsed) ? null : this.#runs.definitions.newest(tx, workflow);
        if (definition === null) continue;
        tx.spend(startSteps);
        // The key makes the event one start of each workflow, also when a request is performed again.
        const id = ids.get(workflow) ?? makeId();
        const once = { key: `event ${name} ${key}`, sameInput: true };
        const start = { id, workflow, definitionId: definition.id, input: payload, rootId: rootId ?? null, ...once };
        const { run, created } = this.#runs.startNow(tx, start);
        // A request that is performed again finds the run that it has started.
        started.set(workflow, { run, created: created || (isRepeat && run.id === id) });
      }
      this.#post(tx, { event: name, key, payload: parsed, ...(rootId === undefined ? {} : { rootId }) });
      return [...started.values()];
    });
  }

  subscribe(event: string, subscriber: Subscriber): Promise<void> {
    return this.#commit.run((tx) => this.#runs.triggers.subscribe(tx, event, subscriber));
  }

  unsubscribe(event: string, subscriber: Subscriber): Promise<void> {
    return this.#commit.run((tx) => this.#runs.triggers.unsubscribe(tx, event, subscriber));
  }

  #post(tx: Tx, event: Omit<SubscribedEvent, "subscriber">): void {
    const subscribers = this.#runs.triggers.subscribers(tx, event.event);
    if (event.rootId !== undefined && subscribers.length > 0) this.#families.admit(tx, event.rootId);
    const tasks = subscribers.map(({ lane, name }) => {
      const input: SubscribedEvent = { ...event, subscriber: name };
      // The id makes the event one task of each subscriber, also when a request is performed again.
      const id = createHash("sha256")
        .update(JSON.stringify([event.event, event.key, lane, name]))
        .digest("hex")
        .slice(0, 32);
      return looseTask({
        id: `${eventTaskPrefix(event.rootId)}${id}`,
        task: lane,
        input: writeExact(input as unknown as Json),
        retry: subscriberRetry,
      });
    });
    if (tasks.length > 0) this.#board.postNow(tx, tasks);
  }
}
