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

  constructor({ commit, runs }: { commit: GroupCommit; runs: LocalRuns }) {
    this.#commit = commit;
    this.#runs = runs;
  }

  emit({ name, payload, key }: NewEvent, makeId: () => string): Promise<readonly StartedByEvent[]> {
    const parsed = JSON.parse(payload) as Json;
    return this.#commit.run((tx) => {
      const started = new Map<string, StartedByEvent>();
      for (const listener of this.#runs.triggers.listeners(tx, name)) {
        const { workflow } = listener;
        const definition = started.has(workflow) || !matches(listener, parsed) ? null : this.#runs.definitions.newest(tx, workflow);
        if (definition === null) continue;
        tx.spend(startSteps);
        // The key makes the event one start of each workflow, also when a request is performed again.
        const start = { id: makeId(), workflow, definitionId: definition.id, input: payload, key: `event ${name} ${key}`, sameInput: true };
        started.set(workflow, this.#runs.startNow(tx, start));
      }
      return [...started.values()];
    });
  }
}
