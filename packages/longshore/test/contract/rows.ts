// The contract of every store's rows: reads by key and in order, atomic writes, and durable commits. This suite does not depend on the
// meaning of rows. store.ts tests the behaviour of the engine.

import { afterEach, describe, expect, it } from "vitest";
import { Missing } from "../../src/core/missing.ts";
import { type Column, type RowStore, type Scan, type TableSpec, Unavailable } from "../../src/engine/rows.ts";
import type { ReadTx } from "../../src/engine/tx.ts";

/** The rows of a store that was opened. */
export interface OpenedRows {
  readonly rows: RowStore;
  /** Ends it without a close, like a crash, and opens it again. Null when no data remains after the process. */
  readonly crash: (() => Promise<OpenedRows>) | null;
  close(): void | Promise<void>;
}

interface Entry {
  readonly kind: string;
  readonly name: string;
  readonly version: number;
  readonly body: string;
  readonly bytes?: number;
}

/** A table with three key columns and texts. */
const entries: TableSpec<Entry> = {
  name: "document",
  key: ["kind", "name", "version"],
  columns: [
    ["kind", ({ kind }) => kind],
    ["name", ({ name }) => name],
    ["version", ({ version }) => version],
    ["body", ({ body }) => body],
    ["created_at", () => 1],
    ["updated_at", () => 2],
  ],
  sizes: [["bytes", ["name", "body"]]],
  of: (row) => ({
    ...{ kind: row.kind as string, name: row.name as string, version: row.version as number },
    ...{ body: row.body as string, bytes: row.bytes as number },
  }),
};

/** A table whose key is a number that is never used twice, with columns that may be null. */
interface Numbered {
  readonly id: number;
  readonly owner: string;
  readonly run: string | null;
  readonly grant: number;
}

const numbered: TableSpec<Numbered> = {
  name: "log",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["task_id", ({ owner }) => owner],
    ["run_id", ({ run }) => run],
    ["attempt", () => 0],
    ["grant_count", ({ grant }) => grant],
    ["bytes", () => 10],
    ["chunks", () => "[]"],
  ],
  of: (row) => ({
    ...{ id: row.id as number, owner: row.task_id as string, run: row.run_id as string | null },
    grant: row.grant_count as number,
  }),
};

const owners: TableSpec<{ id: string }> = {
  name: "pruned",
  key: ["id"],
  columns: [["id", ({ id }) => id]],
  of: (row) => ({ id: row.id as string }),
};

/** Content of any bytes. */
interface Content {
  readonly id: number;
  readonly value: Uint8Array;
}

const contents: TableSpec<Content> = {
  name: "bus_record",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["at", () => 0],
    ["value", ({ value }) => value],
  ],
  of: (row) => ({ id: row.id as number, value: row.value as Uint8Array }),
};

/** Loads of one read: each needs at least one more row. */
const loadsMax = 100;

async function read<T>(rows: RowStore, work: (tx: ReadTx) => T): Promise<T> {
  const tx: ReadTx = { isOperation: false, loaded: new Map() };
  for (let loads = 0; loads < loadsMax; loads++) {
    try {
      return work(tx);
    } catch (thrown) {
      if (!(thrown instanceof Missing)) throw thrown;
      await rows.load(tx, thrown.all);
    }
  }
  throw new Error(`A read was performed ${loadsMax} times and still misses rows.`);
}

const entry = (name: string, version = 1, body = ""): Entry => ({ kind: "k", name, version, body });
const placeOf = ({ name, version }: Entry) => `${name}${version}`;

export function rowsContract(name: string, open: () => Promise<OpenedRows>): void {
  describe(name, () => {
    const opened: OpenedRows[] = [];
    afterEach(async () => {
      for (const each of opened.splice(0)) await each.close();
    });

    async function setup() {
      const place = await open();
      opened.push(place);
      return over(place);
    }

    function over({ rows, crash }: OpenedRows) {
      const table = rows.table(entries);
      const scan = async (wanted: Scan) => (await read(rows, (tx) => [...table.scan(tx, wanted)])).map(placeOf);
      const get = (wanted: string, version = 1) => read(rows, (tx) => table.get(tx, "k", wanted, version));
      const write = async (work: () => void) => rows.commit(work);
      const reopen = async () => {
        const again = await crash?.();
        if (again !== undefined) opened.push(again);
        return again === undefined ? null : over(again);
      };
      return { rows, table, scan, get, write, reopen };
    }

    it("a row is read by its key unchanged, and is absent after its removal", async () => {
      const { table, get, write } = await setup();
      expect(await get("a")).toBeNull();
      await write(() => table.insert([entry("a", 1, "first")]));
      expect(await get("a")).toMatchObject({ ...entry("a", 1, "first") });
      await write(() => table.write(entry("a", 1, "second")));
      expect((await get("a"))?.body).toBe("second");
      await write(() => table.remove(["k", "a", 1]));
      expect(await get("a")).toBeNull();
    });

    it.each([0, 1, 9, 10, 11, 25])("%i rows are inserted together", async (count) => {
      const { table, scan, write } = await setup();
      const versions = Array.from({ length: count }, (_, at) => at + 1);
      await write(() => table.insert(versions.map((version) => entry("a", version))));
      expect(await scan({ by: entries.key })).toEqual(versions.map((version) => `a${version}`));
    });

    it("an insert with an existing key is refused, and nothing of its commit remains", async () => {
      const { table, scan, write } = await setup();
      await write(() => table.insert([entry("a")]));
      const refused = write(() => {
        table.insert([entry("b")]);
        table.insert([entry("a")]);
      });
      const error = await refused.then(
        () => null,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toBeInstanceOf(Unavailable);
      expect(await scan({ by: entries.key })).toEqual(["a1"]);
    });

    it("some columns of an existing row can be written without the others", async () => {
      const { table, get, write } = await setup();
      await write(() => table.insert([entry("a", 1, "old")]));
      const body: readonly Column<Entry>[] = [["body", ({ body }) => body]];
      await write(() => table.write(entry("a", 1, "new"), body));
      await write(() => table.write(entry("absent", 1, "new"), body));
      expect(await get("a")).toMatchObject({ name: "a", body: "new" });
      expect(await get("absent")).toBeNull();
    });

    it("a scan is in the order of its columns, between exclusive bounds, from either end", async () => {
      const { table, scan, write } = await setup();
      await write(() => table.insert([entry("b", 2), entry("a", 2), entry("B"), entry("b"), entry("a", 10), entry("c")]));
      const by = entries.key;
      expect(await scan({ by })).toEqual(["B1", "a2", "a10", "b1", "b2", "c1"]);
      expect(await scan({ by, backwards: true, limit: 2 })).toEqual(["c1", "b2"]);
      expect(await scan({ by, equal: ["k", "b"] })).toEqual(["b1", "b2"]);
      expect(await scan({ by, equal: ["k"], above: ["a", 2], below: ["b", 2] })).toEqual(["a10", "b1"]);
      expect(await scan({ by, equal: ["k"], above: ["a"] })).toEqual(["b1", "b2", "c1"]);
      expect(await scan({ by, equal: ["k"], above: ["a", 2], below: ["b"] })).toEqual(["a10"]);
      expect(await scan({ by, offset: 1, limit: 2 })).toEqual(["a2", "a10"]);
      expect(await scan({ by, offset: 6, limit: 2 })).toEqual([]);
    });

    it("a scan may exclude rows by null columns and by fixed values, and may find keys first", async () => {
      const { rows, write } = await setup();
      const table = rows.table(numbered);
      const all = [
        { id: 1, owner: "t", run: null, grant: 1 },
        { id: 2, owner: "t", run: "r", grant: 2 },
        { id: 3, owner: "u", run: "r", grant: 1 },
      ];
      await write(() => table.insert(all));
      const ids = async (scan: Scan) => (await read(rows, (tx) => [...table.scan(tx, scan)])).map(({ id }) => id);
      expect(await ids({ by: ["id"], without: "run_id" })).toEqual([1]);
      expect(await ids({ by: ["id"], without: ["run_id", "task_id"] })).toEqual([]);
      expect(await ids({ by: ["id"], having: "run_id" })).toEqual([2, 3]);
      expect(await ids({ by: ["id"], only: { run_id: "r", task_id: "t" } })).toEqual([2]);
      expect(await ids({ by: ["task_id", "id"], equal: ["t"], above: [0], limit: 5, keysFirst: true })).toEqual([1, 2]);
    });

    it("a scan that may stop early includes the row that completes the requested amount", async () => {
      const { rows, table, write } = await setup();
      const versions = Array.from({ length: 30 }, (_, at) => at + 1);
      await write(() => table.insert(versions.map((version) => entry("a", version, "€".repeat(100)))));
      const reached = async (of: string, chars: number) =>
        (await read(rows, (tx) => [...table.scan(tx, { by: entries.key, limit: 30, enough: { chars, of: [of] } })])).map(placeOf);
      const all = versions.map((version) => `a${version}`);
      for (const [of, chars, count] of [
        ["body", 250, 3],
        ["version", 10, 4],
        ["bytes", 301, 1],
        ["body", 100_000, 30],
      ] as const) {
        const found = await reached(of, chars);
        expect(found).toEqual(all.slice(0, found.length));
        expect(found.length).toBeGreaterThanOrEqual(count);
      }
    });

    it("sizes, sums and counts cover all rows of a scan", async () => {
      const { rows, table, get, write } = await setup();
      await write(() => table.insert([entry("a", 1, "€"), entry("a", 2, ""), entry("b", 1, "xyz")]));
      expect((await get("a"))?.bytes).toBe(4);
      const ofA: Scan = { by: entries.key, equal: ["k", "a"], limit: 1 };
      expect(await read(rows, (tx) => [table.total(tx, ofA, "bytes"), table.total(tx, ofA, "version"), table.total(tx, ofA)])).toEqual([
        { rows: 2, sum: 5 },
        { rows: 2, sum: 3 },
        { rows: 2, sum: 0 },
      ]);
      const none: Scan = { by: entries.key, equal: ["none"] };
      expect(await read(rows, (tx) => table.total(tx, none, "bytes"))).toEqual({ rows: 0, sum: 0 });
    });

    it("rows that refer to other rows are found for all of these at once", async () => {
      const { rows, write } = await setup();
      const table = rows.table(numbered);
      const tasks = ["r", "r.0", "r.1", "r-1.0", "s", "t"];
      await write(() => {
        rows.table(owners).insert([{ id: "r" }, { id: "t" }]);
        table.insert(tasks.map((owner, at) => ({ id: at + 1, owner, run: null, grant: 1 })));
      });
      const owned = async (within: boolean, limit = 10) =>
        (await read(rows, (tx) => [...table.scan(tx, { by: ["task_id"], ownedBy: { table: owners.name, within }, limit })]))
          .map(({ owner }) => owner)
          .sort();
      expect(await owned(false)).toEqual(["r", "t"]);
      expect(await owned(true)).toEqual(["r.0", "r.1"]);
      expect(await owned(true, 1)).toHaveLength(1);
    });

    it("all rows of a scan are removed together", async () => {
      const { table, scan, write } = await setup();
      await write(() => table.insert([entry("a", 1), entry("a", 2), entry("b", 1)]));
      await write(() => table.remove({ by: entries.key, equal: ["k", "a"], above: [1] }));
      expect(await scan({ by: entries.key })).toEqual(["a1", "b1"]);
    });

    it("a key that is a table's only column may be written twice", async () => {
      const { rows, write } = await setup();
      const table = rows.table(owners);
      await write(() => table.write({ id: "x" }));
      await write(() => table.write({ id: "x" }));
      expect(await read(rows, (tx) => table.total(tx, { by: ["id"] }).rows)).toBe(1);
    });

    it("texts, bytes and integers are read unchanged", async () => {
      const { rows, table, get, write } = await setup();
      const text = "\u00e9\u{1f6a2} \"'\\ line\nend";
      const version = Number.MAX_SAFE_INTEGER;
      const value = Uint8Array.from({ length: 256 }, (_, at) => at);
      await write(() => {
        table.insert([entry(text, version, text)]);
        rows.table(contents).insert([{ id: 1, value }]);
      });
      expect(await get(text, version)).toMatchObject({ name: text, version, body: text });
      expect(await read(rows, (tx) => [...(rows.table(contents).get(tx, 1)?.value ?? [])])).toEqual([...value]);
    });

    it("a key or a bound that no row can have finds no row, and does not affect other reads", async () => {
      const { rows, table, scan, write } = await setup();
      await write(() => table.insert([entry("a", 1), entry("a", 2), entry("a\u0001", 1), entry("b", 1)]));
      const found = await read(rows, (tx) => {
        const odd = [["a\u0000", 1] as const, ["a", Number.NaN] as const, ["a", 1.5] as const, ["a", 1e20] as const];
        return [table.get(tx, "k", "a", 1), ...odd.map(([name, version]) => table.get(tx, "k", name, version))].map((row) => row?.name);
      });
      expect(found).toEqual(["a", undefined, undefined, undefined, undefined]);
      const by = entries.key;
      expect(await scan({ by, equal: ["k", "a\u0000"] })).toEqual([]);
      expect(await scan({ by, equal: ["k"], above: ["a\u0000", 1] })).toEqual(["a\u00011", "b1"]);
      expect(await scan({ by, equal: ["k"], below: ["a\u0000", 1] })).toEqual(["a1", "a2"]);
      expect(await scan({ by, equal: ["k", "a"], above: [1.5] })).toEqual(["a2"]);
      expect(await scan({ by, equal: ["k", "a"], below: [1.5] })).toEqual(["a1"]);
      expect(await scan({ by, equal: ["k", "a"], below: [1e300] })).toEqual(["a1", "a2"]);
      expect(await read(rows, (tx) => table.total(tx, { by, equal: ["k", "\u0000"] }, "bytes"))).toEqual({ rows: 0, sum: 0 });
      await write(() => {
        table.remove(["k", "a\u0000", 1]);
        table.remove({ by, equal: ["k"], above: ["a\u0000"], below: ["b"] });
      });
      expect(await scan({ by })).toEqual(["a1", "a2", "b1"]);
    });

    it("a text with a NUL character is written, and also the other rows of its commit", async () => {
      const { table, get, write } = await setup();
      await write(() => table.insert([entry("a", 1, "be\u0000fore"), entry("b", 1, "whole")]));
      expect((await get("a"))?.body).toMatch(/^be/);
      expect((await get("b"))?.body).toBe("whole");
      await write(() => table.write(entry("a", 1, "be\u0000hind")));
      expect((await get("a"))?.body).toMatch(/^be/);
    });

    it("a failed commit leaves no change, and earlier commits are kept over a crash", async () => {
      const { table, write, scan, reopen } = await setup();
      await write(() => table.insert([entry("kept")]));
      const failed = write(() => {
        table.insert([entry("lost")]);
        table.remove(["k", "kept", 1]);
        throw new Error("no");
      });
      await expect(failed).rejects.toThrow("no");
      expect(await scan({ by: entries.key })).toEqual(["kept1"]);
      const again = await reopen();
      if (again !== null) expect(await again.scan({ by: entries.key })).toEqual(["kept1"]);
    });
  });
}
