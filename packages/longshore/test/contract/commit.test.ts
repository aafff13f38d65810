// The group commit on a store whose reads are asynchronous. An operation that misses rows is performed again, and no caller sees effects of
// the first time.

import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Missing } from "../../src/core/missing.ts";
import { Rows } from "../../src/engine/cached-rows.ts";
import { GroupCommit } from "../../src/engine/commit.ts";
import { type RowStore, type TableSpec, together, Unavailable } from "../../src/engine/rows.ts";
import type { ReadTx, Tx } from "../../src/engine/tx.ts";
import { type Database, openDatabase } from "../../src/store/sqlite/driver.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { deferred } from "../support/until.ts";
import { missingRows } from "./missing-rows.ts";
import { diskFull } from "./sqlite.ts";

interface Item {
  readonly id: string;
  readonly count: number;
}

const itemTable: TableSpec<Item> = {
  name: "item",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["count", ({ count }) => count],
  ],
  of: (row) => ({ id: row.id as string, count: row.count as number }),
};

describe("a batch on rows that are read later", () => {
  let db: Database;
  let commit: GroupCommit;
  let items: Rows<Item>;
  /** The number of reads in each load. */
  let loads: number[];
  let fails: Error | null;
  let unread: Error | null;
  /** A row that no load can read. */
  let unreadable: string | null;
  let isOwned: boolean;
  let isReplaced: boolean;

  beforeEach(async () => {
    db = await openDatabase(":memory:");
    db.exec("CREATE TABLE item (id TEXT PRIMARY KEY, count INTEGER NOT NULL)");
    for (const id of ["a", "b", "c"]) db.exec(`INSERT INTO item VALUES ('${id}', 0)`);
    loads = [];
    fails = null;
    unread = null;
    unreadable = null;
    isOwned = true;
    isReplaced = false;
    const later = missingRows(sqliteRows({ ...db, transaction }, () => null));
    const store: RowStore = { ...later, load: counted(later.load), commit: fenced(later.commit), isOwned: () => isOwned };
    commit = new GroupCommit(store, () => 0);
    const rows = store.table(itemTable);
    items = new Rows<Item>(commit, {
      load: (tx, id) => rows.get(tx, id),
      save: (item) => rows.write(item),
      keep: () => "no",
      keptMax: 0,
    });
  });

  afterEach(() => db.close());

  function transaction(work: () => void): void {
    db.transaction(() => {
      work();
      if (fails !== null) throw fails;
    });
  }

  function counted(load: RowStore["load"]): RowStore["load"] {
    return (tx, missing) => {
      loads.push(missing.length);
      const isUnreadable = missing.some(({ read }) => (read as { key: string }).key.endsWith(JSON.stringify([unreadable])));
      if (isUnreadable) return Promise.reject(new Error("a key that cannot be read"));
      return unread === null ? load(tx, missing) : Promise.reject(unread);
    };
  }

  /** A commit that shows whether another server has taken over. */
  function fenced(write: RowStore["commit"]): RowStore["commit"] {
    return async (work) => {
      if (isReplaced) throw new Unavailable(new Error("another server has taken over"));
      await write(work);
      isOwned = true;
    };
  }

  const add = (tx: Tx, id: string): number => {
    const count = (items.get(tx, id)?.count ?? 0) + 1;
    items.put(tx, id, { id, count });
    return count;
  };
  const stored = () =>
    Object.fromEntries(
      db
        .prepare("SELECT id, count FROM item ORDER BY id")
        .all()
        .map((row) => [row.id, row.count]),
    );

  it("runs operations in the order of arrival, also those that miss no row", async () => {
    const order: string[] = [];
    const note = (tx: Tx, name: string) => {
      order.push(name);
      tx.undo(() => order.pop());
    };
    await Promise.all([
      commit.run((tx) => note(tx, "first")),
      commit.run((tx) => {
        note(tx, "second");
        add(tx, "a");
      }),
      commit.run((tx) => note(tx, "third")),
    ]);
    expect(order).toEqual(["first", "second", "third"]);
  });

  it("loads all rows that its operations miss together", async () => {
    expect(await Promise.all(["a", "b", "c"].map((id) => commit.run((tx) => add(tx, id))))).toEqual([1, 1, 1]);
    expect(loads).toEqual([3]);
    expect(stored()).toEqual({ a: 1, b: 1, c: 1 });
    expect(commit.commits).toBe(1);
  });

  it("loads rows together that an operation reads one after another, when the operation names them", async () => {
    const sum = (tx: Tx) => ["a", "b", "c"].reduce((all, id) => all + add(tx, id), 0);
    const reads = (tx: Tx) => ["a", "b", "c"].map((id) => () => items.get(tx, id));
    expect(
      await commit.run((tx) =>
        together(
          () => sum(tx),
          () => reads(tx),
        ),
      ),
    ).toBe(3);
    expect(loads).toEqual([3]);
    expect(stored()).toEqual({ a: 1, b: 1, c: 1 });
  });

  it("performs an operation again each time it misses a row, and makes its changes once", async () => {
    let performed = 0;
    const sum = await commit.run((tx) => {
      performed++;
      return add(tx, "a") + add(tx, "b") + add(tx, "a");
    });
    expect({ sum, performed, loads }).toEqual({ sum: 4, performed: 3, loads: [1, 1] });
    expect(stored()).toEqual({ a: 2, b: 1, c: 0 });
  });

  it("fails only the operation that throws after its rows are loaded", async () => {
    const outcomes = await Promise.allSettled([
      commit.run((tx) => add(tx, "a")),
      commit.run((tx) => {
        add(tx, "b");
        throw new Error("no");
      }),
      commit.run((tx) => add(tx, "b")),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(stored()).toEqual({ a: 1, b: 1, c: 0 });
  });

  it("shows no change to readers before it is committed", async () => {
    const seen: { read: number | undefined; stored: number }[] = [];
    const read = async () => {
      const count = await commit.read((tx) => items.get(tx, "a")?.count);
      seen.push({ read: count, stored: stored().a as number });
    };
    const reads: Promise<void>[] = [];
    const done = commit.run((tx) => {
      const count = add(tx, "a");
      // The time between this point and the commit.
      reads.push(read());
      return count;
    });
    expect(await done).toBe(1);
    await Promise.all(reads);
    expect(seen.length).toBeGreaterThan(0);
    for (const one of seen) expect(one.read).toBeLessThanOrEqual(one.stored);
    expect(await commit.read((tx) => items.get(tx, "a")?.count)).toBe(1);
  });

  it("makes a read load again when it happens between the load of the read and its end", async () => {
    const reading = commit.read((tx) => [items.get(tx, "a")?.count, items.get(tx, "b")?.count]);
    // The first row is loaded before this commit, and the second after it.
    await commit.run((tx) => items.put(tx, "a", { id: "a", count: 7 }));
    expect(await reading).toEqual([7, 0]);
  });

  it("allows a read to finish that is overtaken again and again", async () => {
    let more = true;
    const writing = (async () => {
      for (let count = 1; more; count++) await commit.run((tx) => items.put(tx, "a", { id: "a", count }));
    })();
    const seen = await commit.read((tx) => ["a", "b", "c", "d", "e"].map((id) => items.get(tx, id)?.count ?? null));
    more = false;
    await writing;
    expect(seen).toEqual([expect.any(Number), 0, 0, null, null]);
  });

  it("does not use rows that a read has loaded before", async () => {
    await commit.read((tx) => items.get(tx, "a"));
    await Promise.all([commit.read((tx) => items.get(tx, "a")), commit.run((tx) => add(tx, "a")), commit.run((tx) => add(tx, "a"))]);
    expect(await commit.run((tx) => add(tx, "a"))).toBe(3);
  });

  it("is undone when the store refuses it, and later batches are refused for a while", async () => {
    fails = diskFull();
    await expect(commit.run((tx) => add(tx, "a"))).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
    fails = null;
    await expect(commit.run((tx) => add(tx, "a"))).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
    expect(stored()).toEqual({ a: 0, b: 0, c: 0 });
  });

  it("whose rows cannot be written is performed one operation at a time", async () => {
    fails = new Error("a row that cannot be written");
    const failing = Promise.allSettled(["a", "b"].map((id) => commit.run((tx) => add(tx, id))));
    expect((await failing).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    fails = null;
    expect(await commit.run((tx) => add(tx, "a"))).toBe(1);
  });

  it("whose rows cannot be loaded fails completely, and the next one is performed", async () => {
    unread = new Error("the connection is gone");
    const outcomes = await Promise.allSettled(["a", "b"].map((id) => commit.run((tx) => add(tx, id))));
    expect(outcomes).toEqual(
      [1, 2].map(() => ({ status: "rejected", reason: expect.objectContaining({ message: "the connection is gone" }) })),
    );
    unread = null;
    expect(await commit.run((tx) => add(tx, "a"))).toBe(1);
    expect(stored()).toEqual({ a: 1, b: 0, c: 0 });
  });

  it("performs the other operations when the rows of one cannot be loaded", async () => {
    unreadable = "b";
    const outcomes = await Promise.allSettled(["a", "b", "c", "a"].map((id) => commit.run((tx) => add(tx, id))));
    expect(outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : String(outcome.reason)))).toEqual([
      ...[1, "Error: a key that cannot be read", 1, 2],
    ]);
    expect(stored()).toEqual({ a: 2, b: 0, c: 1 });
    unreadable = null;
    expect(await commit.run((tx) => add(tx, "b"))).toBe(1);
  });

  it("loads once, and not for each operation, when the store is unavailable", async () => {
    unread = new Unavailable(new Error("the connection is gone"));
    const outcomes = await Promise.allSettled(["a", "b", "c"].map((id) => commit.run((tx) => add(tx, id))));
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(loads).toEqual([3]);
  });

  it("that changes nothing is answered from memory only when this server owns the data", async () => {
    expect(await commit.run(() => "from memory")).toBe("from memory");
    expect(commit.commits).toBe(0);
    isOwned = false;
    expect(await commit.run(() => "confirmed")).toBe("confirmed");
    expect(commit.commits).toBe(1);
    isOwned = false;
    isReplaced = true;
    await expect(commit.run(() => "late")).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
  });

  it("shows that a reader may rely on memory, when another server may own the data", async () => {
    isOwned = false;
    expect(await commit.read(() => "from memory")).toBe("from memory");
    expect(await commit.read((tx) => items.get(tx, "a")?.count)).toBe(0);
    expect(commit.commits).toBe(1);
    isOwned = false;
    isReplaced = true;
    for (const read of [() => commit.read(() => "late"), () => commit.read((tx) => items.get(tx, "a"))])
      await expect(read()).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
  });

  it("holds back a reader whose rows arrive when another server may own the data", async () => {
    const reading = commit.read((tx) => items.get(tx, "a"));
    isOwned = false;
    isReplaced = true;
    await expect(reading).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
  });

  it("without an operation may fail: deferred writes stay for the next batch", async () => {
    const touch = commit.joinWhenTouched({ dirty: true, write: () => {}, applied: () => touch() });
    touch();
    isReplaced = true;
    const refused = expect(commit.run(() => {})).rejects.toThrow("another server has taken over");
    // Closing performs the operation at once. The batch that was planned for it comes later and is empty.
    await commit.close();
    await refused;
    await new Promise((resolve) => setImmediate(resolve));
    await commit.quiet();
  });

  it("is performed before the store closes", async () => {
    const last = commit.run((tx) => add(tx, "a"));
    await commit.close();
    expect(await last).toBe(1);
    await expect(commit.run((tx) => add(tx, "a"))).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
  });
});

describe("a read on a store that reports the version of its rows", () => {
  /**
   * A row whose reads and writes the test controls: `respond` ends the commit that has taken effect, `arrive` ends the load that has read.
   */
  function setup() {
    const database = { count: 0, version: 0 };
    const known = { version: 0 };
    let arriving: (() => void)[] = [];
    let torn = false;
    let responds = deferred<void>();
    const table = {
      get: (tx: ReadTx) => {
        if (tx.loaded.has("a")) return tx.loaded.get("a") as Item;
        throw new Missing("a");
      },
    };
    let written: Item | null = null;
    const takesEffect = deferred<void>();
    const store = {
      isOwned: () => true,
      isGone: () => null,
      version: () => known.version,
      async commit(write: () => void) {
        write();
        await takesEffect.promise;
        Object.assign(database, { count: written?.count, version: database.version + 1 });
        await responds.promise;
        known.version = database.version;
      },
      async load(tx: ReadTx) {
        const seen = { ...database };
        const isTorn = torn;
        torn = false;
        if (!tx.isOperation) await new Promise<void>((resolve) => arriving.push(resolve));
        tx.loaded.set("a", { id: "a", count: seen.count });
        return isTorn ? "torn" : seen.version;
      },
    } as unknown as RowStore;
    const commit = new GroupCommit(store, () => 0);
    const items = new Rows<Item>(commit, {
      load: (tx) => table.get(tx),
      save: (item) => {
        written = item;
      },
      keep: () => "no",
      keptMax: 0,
    });
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    return {
      commit,
      read: () => commit.read((tx) => items.get(tx, "a")?.count),
      write: (count: number) => commit.run((tx) => items.put(tx, "a", { id: "a", count })),
      takeEffect: () => takesEffect.resolve(),
      respond: () => {
        responds.resolve();
        responds = deferred();
      },
      async arrive() {
        await turn();
        for (const resolve of arriving.splice(0)) resolve();
        arriving = [];
        await turn();
      },
      tear: () => {
        torn = true;
      },
      turn,
    };
  }

  it("does not wait for a commit after it", async () => {
    const { commit, read, write, takeEffect, respond, arrive, turn } = setup();
    const writing = write(7);
    await turn();
    const reading = read();
    await arrive();
    expect(await reading).toBe(0);
    expect(commit.commits).toBe(0);
    takeEffect();
    await turn();
    respond();
    await writing;
    expect(commit.reads).toEqual({ loaded: 1, overtaken: 0, alone: 0 });
  });

  it("waits for the response to a commit whose rows it has read, and uses these rows", async () => {
    const { commit, read, write, takeEffect, respond, arrive, turn } = setup();
    const writing = write(7);
    await turn();
    takeEffect();
    await turn();
    let answer: unknown = "none";
    const reading = read().then((count) => {
      answer = count;
    });
    await arrive();
    expect(answer).toBe("none");
    respond();
    await Promise.all([writing, reading]);
    expect(answer).toBe(7);
    expect(commit.reads).toEqual({ loaded: 1, overtaken: 0, alone: 0 });
  });

  it.each([
    ["are older than memory", false],
    ["are of two versions", true],
  ])("loads rows again that %s", async (_title, isTorn) => {
    const { commit, read, write, takeEffect, respond, arrive, tear, turn } = setup();
    if (isTorn) tear();
    const reading = read();
    await turn();
    if (!isTorn) {
      takeEffect();
      const writing = write(7);
      await turn();
      respond();
      await writing;
    }
    await arrive();
    await arrive();
    expect(await reading).toBe(isTorn ? 0 : 7);
    expect(commit.reads).toEqual({ loaded: 1, overtaken: 1, alone: 0 });
  });
});

it.each([
  ["long texts is written in the turn after the one that performs it", 600_000, ["performed", "another request", "written"]],
  ["short texts is written in the turn that performs it", 600, ["performed", "written", "another request"]],
])("a batch with %s", async (_, chars, expected) => {
  const db = await openDatabase(":memory:");
  onTestFinished(() => db.close());
  db.exec("CREATE TABLE item (id TEXT PRIMARY KEY, count INTEGER NOT NULL)");
  const events: string[] = [];
  const store = sqliteRows(db, () => null);
  const write: RowStore["commit"] = (work) => {
    events.push("written");
    return store.commit(work);
  };
  const commit = new GroupCommit({ ...store, commit: write }, () => 0);
  const rows = store.table(itemTable);
  const items = new Rows<Item>(commit, {
    ...{
      load: (tx: ReadTx, id: string) => rows.get(tx, id),
      save: (item: Item) => rows.write(item),
      keep: () => "no" as const,
      keptMax: 0,
    },
    chars: () => chars,
  });
  await commit.run((tx) => {
    events.push("performed");
    setImmediate(() => events.push("another request"));
    items.put(tx, "a", { id: "a", count: 1 });
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toEqual(expected);
});
