// Definitions and their plans. A definition is never changed. Its plan is shared by all its runs, and compiled again only after it was
// dropped from memory.

import type { Clock } from "../../core/clock.ts";
import { checkName } from "../../core/names.ts";
import { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { Postponed } from "../commit-errors.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { definitionIdTable, definitionTable } from "../tables/definition.ts";
import type { Later, ReadTx, Tx } from "../tx.ts";
import { DefinitionCache } from "./definition-cache.ts";
import type { Definition, NewDefinition } from "./dialect.ts";
import { isGrown } from "./grown-ids.ts";
import { atOnceCharsMax, type Plan } from "./plan.ts";
import type { Brain } from "./store.ts";

/** Definitions as readers get them: a reader may use the plan of a definition only after it has waited for it. */
export interface PlannedDefinitions {
  byId(tx: ReadTx, id: string): Definition | null;
  /** Returns the definition when its plan is ready, also when it has none because of a mistake in it. */
  withPlan(definition: Definition): Later<Definition>;
}

export function planned({ withPlan }: Pick<PlannedDefinitions, "withPlan">, found: Definition | null): Later<Definition | undefined> {
  return found === null ? undefined : withPlan(found);
}

/** The minimum size that a node of a plan counts, in characters of its source: the shortest step that an author can write. */
const nodeChars = 40;

export class Definitions {
  readonly #rows: Rows<Definition>;
  readonly #plans = new DefinitionCache<Plan>();
  /** Plans that are being compiled. */
  readonly #making = new Map<string, Promise<Plan>>();
  /** Definitions that were read or committed. A start reads them several times, and each read of the row costs more than the decision. */
  readonly #known = new DefinitionCache<Definition>();
  readonly #newest = new DefinitionCache<Definition>();
  readonly #stored: TableRows<Definition>;
  readonly #ids: TableRows<Pick<Definition, "id">>;
  readonly #clock: Clock;
  readonly #brain: Brain;

  constructor(store: RowStore, commit: GroupCommit, clock: Clock, brain: Brain) {
    this.#clock = clock;
    this.#brain = brain;
    this.#stored = store.table(definitionTable);
    this.#ids = store.table(definitionIdTable);
    this.#rows = new Rows<Definition>(commit, {
      load: (tx, id) => this.#known.get(id) ?? this.#learn(this.#stored.get(tx, id)),
      save: (row) => this.#stored.insert([row]),
      chars: ({ source }) => source.length,
      keep: () => "no",
      keptMax: 0,
      committed: (row) => this.#learnNewest(row),
    });
  }

  /** The characters of all sources in memory. A source counts several times when several values made from it are in memory. */
  get keptChars(): number {
    return this.#plans.weight + this.#known.weight + this.#newest.weight;
  }

  byId(tx: ReadTx, id: string): Definition | null {
    return this.#rows.get(tx, id);
  }

  newest(tx: ReadTx, name: string): Definition | null {
    let newest = this.#newest.get(name) ?? this.#readNewest(tx, name);
    for (const row of this.#rows.pending(tx)) if (row.name === name && row.version > (newest?.version ?? 0)) newest = row;
    return newest;
  }

  /**
   * A definition with the same source or the same id is not a new version. A caller that derives ids from sources may define an earlier
   * version again.
   */
  keep(tx: Tx, wanted: NewDefinition): Definition {
    const same = this.byId(tx, wanted.id);
    if (same !== null && this.#isStored(tx, wanted.id)) return same;
    const newest = this.newest(tx, wanted.name);
    if (newest !== null && newest.id !== wanted.id && newest.dialect === wanted.dialect && newest.source === wanted.source) return newest;
    checkName(wanted.id, "id");
    checkName(wanted.name, "name");
    const definition: Definition = { ...wanted, version: (newest?.version ?? 0) + 1, createdAt: this.#clock.now() };
    this.#rows.put(tx, definition.id, definition, true);
    return definition;
  }

  /** For use in an operation, which is postponed when the plan of a large definition has to be compiled first. */
  plan(_tx: ReadTx, definition: Definition): Plan {
    const known = this.#plans.get(definition.id);
    if (known !== undefined) return known;
    if (!isShort(definition)) throw new Postponed(this.#planLater(definition));
    return this.#keepPlan(definition, this.#brain.plan(definition));
  }

  /** For use outside of operations. A caller that got the definition from this store has already waited for its plan. */
  planNow(definition: Definition): Plan {
    return this.#plans.get(definition.id) ?? this.#keepPlan(definition, this.#brain.plan(definition));
  }

  /** Adds a plan that was compiled before the definition was stored. */
  learnPlan(definition: Definition, plan: Plan): void {
    if (!this.#plans.has(definition.id)) this.#keepPlan(definition, plan);
  }

  /** Returns the definition when its plan is ready. A mistake in it is reported when the plan is used. */
  readonly withPlan: PlannedDefinitions["withPlan"] = (definition) => {
    if (isShort(definition) || this.#plans.has(definition.id)) return definition;
    return this.#planLater(definition).then(
      () => definition,
      () => definition,
    );
  };

  /** Compiles one plan at a time for each definition. */
  #planLater(definition: Definition): Promise<Plan> {
    const making = this.#making.get(definition.id);
    if (making !== undefined) return making;
    const made = this.#brain
      .planInTurns(definition)
      .then((plan) => this.#keepPlan(definition, plan))
      .finally(() => this.#making.delete(definition.id));
    this.#making.set(definition.id, made);
    return made;
  }

  /** A short source may have a plan of thousands of nodes. */
  #keepPlan(definition: Definition, plan: Plan): Plan {
    return this.#plans.set(definition.id, plan, definition, Math.max(definition.source.length, plan.nodes.length * nodeChars));
  }

  /** A definition that grew in a run is removed with the run (remains.ts), and may still be in memory. */
  #isStored(tx: ReadTx, id: string): boolean {
    return this.#rows.pending(tx).some((row) => row.id === id) || this.#ids.get(tx, id) !== null;
  }

  #readNewest(tx: ReadTx, name: string): Definition | null {
    for (const row of this.#stored.scan(tx, { by: ["name", "version"], equal: [name], backwards: true, limit: 1 }))
      return this.#learnNewest(row);
    return null;
  }

  #learn(row: Definition | null): Definition | null {
    return row === null ? null : this.#known.set(row.id, row, row);
  }

  #learnNewest(row: Definition | null): Definition | null {
    return row === null ? null : this.#newest.set(row.name, this.#known.set(row.id, row, row), row);
  }
}

/** Whether its plan is compiled at once. A short source that has grown may say that a loop has a thousand iterations. */
function isShort({ id, source }: Definition): boolean {
  return source.length <= atOnceCharsMax && !isGrown(id);
}
