// Changed limits, as rows and in memory.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { AuditValue } from "../audit/audit.ts";
import type { Audit } from "../audit/local-audit.ts";
import { Additions, eachRow } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Once } from "../request-marks.ts";
import { lastText, type RowStore, type TableRows } from "../rows.ts";
import { type Property, propertyTable } from "../tables/endings.ts";
import type { Tx } from "../tx.ts";
import type { LimitChange, LimitChanges, LimitOrder, LimitView } from "./limit-changes.ts";
import type { Limits } from "./limits.ts";
import type { ReadyQueues } from "./ready-queues.ts";

/** Changed keys: more than an operator changes by hand. */
const changesMax = 1_000;
/** Names of rows are in an index, whose entries have a maximum length. */
const keyCharsMax = 1_500;
const prefix = "limit ";

export interface LocalLimitsDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly performed: Once;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly queues: ReadyQueues;
  readonly audit: Audit;
}

export class LocalLimits implements LimitChanges {
  readonly #deps: LocalLimitsDeps;
  readonly #rows: TableRows<Property>;
  readonly #changes: Additions<{ readonly key: string; readonly change: LimitChange | null }>;

  constructor(deps: LocalLimitsDeps) {
    this.#deps = deps;
    this.#rows = deps.store.table(propertyTable);
    this.#changes = new Additions(deps.commit, ({ key, change }) => {
      if (change === null) this.#rows.remove([prefix + key]);
      else this.#rows.write({ name: prefix + key, value: JSON.stringify(change) });
    });
  }

  /** Must be called once, before tasks are put on their lanes. */
  recover(): Promise<void> {
    const { commit, limits } = this.#deps;
    const scan = { by: ["name"], below: [`${prefix}${lastText}`] };
    const take = ({ name, value }: Property) => limits.change(name.slice(prefix.length), JSON.parse(value) as LimitChange);
    return eachRow(commit, this.#rows, scan, { from: [prefix], at: ({ name }) => [name], take });
  }

  async change(key: string, order: LimitOrder): Promise<LimitChange | undefined> {
    const { clock, limits, performed } = this.#deps;
    if (key.length > keyCharsMax) {
      throw new LongshoreError("LONGSHORE_BAD_INPUT", `The key has ${key.length} characters; ${keyCharsMax} are allowed.`);
    }
    return performed.once<LimitChange | undefined>(
      `limit ${key}`,
      (tx) => {
        if (limits.changeOf(key) === undefined && limits.changes >= changesMax)
          throw new LongshoreError("LONGSHORE_LIMIT", `${changesMax} limits are changed already, which is the limit.`);
        const change: LimitChange = { ...order, at: clock.now() };
        this.#apply(tx, key, change, "change");
        return change;
      },
      () => limits.changeOf(key),
    );
  }

  takeBack(key: string): Promise<boolean> {
    const { limits, performed } = this.#deps;
    const takeBack = (tx: Tx) => {
      if (limits.changeOf(key) === undefined) return false;
      this.#apply(tx, key, null, "take back");
      return true;
    };
    return performed.once(`limit back ${key}`, takeBack, (_, before) => before);
  }

  views(): readonly LimitView[] {
    return this.#deps.limits.views(this.#deps.clock.now());
  }

  view(key: string): LimitView | undefined {
    return this.#deps.limits.view(key, this.#deps.clock.now());
  }

  #apply(tx: Tx, key: string, change: LimitChange | null, verb: string): void {
    const { clock, limits, queues, audit } = this.#deps;
    const before = limits.changeOf(key);
    const was = this.view(key);
    limits.change(key, change);
    tx.undo(() => limits.change(key, before ?? null));
    this.#changes.add(tx, { key, change });
    queues.roomUnder(tx, key, clock.now());
    audit.note(tx, {
      verb,
      kind: "limit",
      target: key,
      was: valueOfView(was),
      became: valueOfView(this.view(key)),
      reason: change?.reason,
    });
  }
}

function valueOfView(view: LimitView | undefined): AuditValue | null {
  if (view === undefined) return null;
  const { max, rate } = view;
  return { max, rate: rate === null ? null : `${rate.count} in ${rate.windowMs} ms` };
}
