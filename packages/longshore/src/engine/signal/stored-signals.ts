// Signals as their rows show them. Nothing about them is only in memory, so a server that does not own the data reads them too.

import { turnRows } from "../../core/slices/slices.ts";
import type { Scan } from "../rows.ts";
import { limited } from "../run/list-page.ts";
import { pageAtOnceCharsMax } from "../run/reader.ts";
import type { ReadDeps } from "../sliced-reads.ts";
import { signalTable } from "../tables/signal.ts";
import type { ReadTx } from "../tx.ts";
import type { Signal } from "./signal.ts";
import type { SignalPage, SignalQuery, SignalStore } from "./store.ts";

const order = { by: ["run_id", "number"], enough: { chars: pageAtOnceCharsMax, of: ["value"] } };
const filters: { readonly [State in NonNullable<SignalQuery["state"]>]: Pick<Scan, "without" | "having"> } = {
  kept: { without: "taken_at" },
  taken: { having: "taken_at" },
};

export function storedSignals({ store, read, slices }: ReadDeps): Pick<SignalStore, "list"> {
  const rows = store.table(signalTable);
  const scanned = (tx: ReadTx, runId: string, { state, after = 0, limit }: SignalQuery) =>
    rows.scan(tx, { ...order, ...(state === undefined ? {} : filters[state]), equal: [runId], above: [after], limit: limit + 1 });
  return {
    async list(runId, query) {
      const limit = Math.max(1, limited(query.limit));
      await slices.turn(turnRows);
      return read((tx) => pageOf(scanned(tx, runId, { ...query, limit }), limit));
    },
  };
}

/** Only a row beyond the page shows that there is a next one. */
function pageOf(rows: Iterable<Signal>, limit: number): SignalPage {
  const items: Signal[] = [];
  let chars = 0;
  for (const row of rows) {
    if (items.length === limit || chars >= pageAtOnceCharsMax) return { items, next: items.at(-1)?.number ?? null };
    items.push(row);
    chars += row.value?.length ?? 0;
  }
  // A store may end the scan with the row that reaches the limit.
  return { items, next: chars >= pageAtOnceCharsMax ? (items.at(-1)?.number ?? null) : null };
}
