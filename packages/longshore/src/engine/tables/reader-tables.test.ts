import { describe, expect, it } from "vitest";
import { Missing } from "../../core/missing.ts";
import type { Scan, TableRows } from "../rows.ts";
import type { ReadTx } from "../tx.ts";
import { scanOpen } from "./reader-tables.ts";

const tx: ReadTx = { isOperation: false, loaded: new Map() };

/** Rows of the two indexes, which count how many of them were read, and how many scans have ended. */
function setup(tasks: readonly string[], waits: readonly string[]) {
  const counts = { read: 0, ended: 0 };
  const rows = {
    *scan(_tx: ReadTx, { index, backwards, limit }: Scan) {
      const ids = [...(index === "task_open" ? tasks : waits)].sort();
      try {
        for (const id of (backwards ? ids.reverse() : ids).slice(0, limit)) {
          counts.read++;
          yield id;
        }
      } finally {
        counts.ended++;
      }
    },
  } as unknown as TableRows<string>;
  return { rows, counts };
}

const ids = (count: number, step: number) => Array.from({ length: count }, (_, at) => String(1_000 + at * step));

describe("open tasks with and without a lane", () => {
  it("come in the order of their ids, forwards and backwards, up to the limit", () => {
    const { rows } = setup(["a", "d", "e"], ["b", "c", "f"]);
    const scanned = (more: object) => [...scanOpen(tx, rows, { limit: 10, ...more }, (id) => id)];
    expect(scanned({})).toEqual(["a", "b", "c", "d", "e", "f"]);
    expect(scanned({ backwards: true })).toEqual(["f", "e", "d", "c", "b", "a"]);
    expect(scanned({ limit: 4 })).toEqual(["a", "b", "c", "d"]);
  });

  it("are not read beyond the rows that the caller takes", () => {
    const { rows, counts } = setup(ids(500, 2), ids(500, 3));
    let taken = 0;
    for (const _id of scanOpen(tx, rows, { limit: 1_000 }, (id) => id)) if (++taken === 20) break;
    expect(counts.read).toBeLessThanOrEqual(22);
    expect(counts.ended).toBe(2);
  });

  it("are missed together when the store has loaded neither", () => {
    const rows = {
      scan({ index }: Scan) {
        throw new Missing(index);
      },
    } as unknown as TableRows<string>;
    const missed = catchMissing(() => [...scanOpen(tx, rows, { limit: 1 }, (id) => id)]);
    expect(missed.all).toHaveLength(2);
  });
});

function catchMissing(work: () => void): Missing {
  try {
    work();
  } catch (error) {
    if (error instanceof Missing) return error;
  }
  throw new Error("Nothing was missing.");
}
