// Events, in the process that owns the data: the runs of an event start in one transaction.

import { matches } from "../../core/event-trigger.ts";
import type { Json } from "../../core/json/json.ts";
import type { GroupCommit } from "../commit.ts";
import type { LocalRuns } from "../run/local-runs.ts";
import type { EventStore, NewEvent, StartedByEvent } from "./store.ts";

/** A start takes as long as about so many small steps of a transaction. */
const startSteps = 1_000;

export class LocalEvents implements EventStore {
  readonly #commit: GroupCommit;
  readonly #runs: LocalRuns;
  readonly #isRepeat: () => boolean;

  /** `isRepeat`: whether the current request may have been performed before, with the same ids. Default: never. */
  constructor({ commit, runs, isRepeat = () => false }: { commit: GroupCommit; runs: LocalRuns; isRepeat?: () => boolean }) {
    this.#commit = commit;
    this.#runs = runs;
    this.#isRepeat = isRepeat;
  }

  async emit({ name, payload, key }: NewEvent, makeId: () => string): Promise<readonly StartedByEvent[]> {
    const parsed = JSON.parse(payload) as Json;
    const isRepeat = this.#isRepeat();
    // An operation may run again, and in the context of another request. So the ids are made before it.
    const listening = await this.#commit.read((tx) => this.#runs.triggers.listeners(tx, name));
    const ids = new Map(listening.map(({ workflow }) => [workflow, makeId()]));
    return this.#commit.run((tx) => {
      const started = new Map<string, StartedByEvent>();
      for (const listener of this.#runs.triggers.listeners(tx, name)) {
        const { workflow } = listener;
        const definition = started.has(workflow) || !matches(listener, parsed) ? null : this.#runs.definitions.newest(tx, workflow);
        if (definition === null) continue;
        tx.spend(startSteps);
        // The key makes the event one start of each workflow, also when a request is performed again.
        const id = ids.get(workflow) ?? makeId();
        const start = { id, workflow, definitionId: definition.id, input: payload, key: `event ${name} ${key}`, sameInput: true };
        const { run, created } = this.#runs.startNow(tx, start);
        // A request that is performed again finds the run that it has started.
        started.set(workflow, { run, created: created || (isRepeat && run.id === id) });
      }
      return [...started.values()];
    });
  }
}
