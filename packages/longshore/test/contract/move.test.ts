// Moves data from a folder to PostgreSQL and back, with real files and a real server. No data is lost, changed, or served by two servers.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openEngine } from "../../src/server/engine.ts";
import { migrateData } from "../../src/server/migrate.ts";
import { move } from "../../src/store/move.ts";
import type { MovedTable, Side } from "../../src/store/move-side.ts";
import { openPostgresSide } from "../../src/store/postgres/move-side.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { openSourceFolder, openTargetFolder } from "../../src/store/sqlite/move-side.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";

type Rows = { readonly [table: string]: readonly (readonly unknown[])[] };

/** Property runs: each moves every table there and back. */
const numRuns = 8;
const rowsMax = 6;

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-move-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "data");
}

async function sqliteTables(): Promise<MovedTable[]> {
  const side = await openTargetFolder(newFolder(), "nowhere", () => {});
  onTestFinished(() => side.close());
  return side.tables();
}

/** All rows of a side, in a fixed order. */
async function rowsOf(side: Side): Promise<Rows> {
  const all: { [table: string]: unknown[][] } = {};
  for (const table of await side.tables()) {
    const rows: unknown[][] = [];
    for await (const page of side.pages(table))
      rows.push(...page.map((row) => row.map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value))));
    const name = table.columns.findIndex((column) => column.name === "name");
    const data = table.name === "property" ? rows.filter((row) => !["lock", "moved", "incomplete"].includes(row[name] as string)) : rows;
    all[table.name] = data.sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
  }
  return all;
}

async function rowsIn(folder: string): Promise<Rows> {
  const side = await openSourceFolder(folder, () => {});
  try {
    return await rowsOf(side);
  } finally {
    await side.close();
  }
}

/** Texts that are difficult for a store: numbers above 2^53, escapes, half characters, other scripts, quotes, the empty text. */
const text = fc.oneof(
  fc.string({ unit: "grapheme" }).map((value) => value.replaceAll("\u0000", "")),
  fc.json().map((value) => value.replaceAll("\u0000", "")),
  fc.constantFrom(
    '{"n":9007199254740993,"big":123456789012345678901234567890,"small":1e-400}',
    JSON.stringify("\ud83d half of a character, and a NUL: \u0000"),
    "😀 ÿ ‮ \\u0000 \\x00 '' \"\" {} , NULL",
    "",
    "x".repeat(20_000),
  ),
);
const number = fc.oneof(fc.constantFrom(0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER), fc.maxSafeInteger());
const bytes = fc.uint8Array({ maxLength: 300 });

function anyOf(kind: string): fc.Arbitrary<string | number | Uint8Array> {
  return kind === "text" ? text : kind === "int8" ? number : bytes;
}

/** Rows in which all texts and numbers that must be unique are unique. */
function rowsFor(tables: readonly MovedTable[]): fc.Arbitrary<Rows> {
  return fc.record(
    Object.fromEntries(
      tables.map(({ name, columns, key }) => {
        const row = fc.tuple(...columns.map(({ kind }) => anyOf(kind)));
        const keyOf = (values: readonly unknown[]) =>
          columns.flatMap((column, at) => (key.includes(column.name) ? [String(values[at])] : []));
        const selector = (values: readonly unknown[]) => (key.length === 0 ? Math.random() : keyOf(values).join("\u0000"));
        return [name, fc.uniqueArray(row, { maxLength: rowsMax, selector })];
      }),
    ),
  );
}

/** Columns besides the key that must also be unique. */
const unique: { readonly [table: string]: readonly string[] } = {
  definition: ["name"],
  run: ["parent_task_id"],
  bus_topic: ["name"],
  outbox: ["print"],
  signal: ["key"],
};

async function fill(folder: string, tables: readonly MovedTable[], rows: Rows): Promise<void> {
  const { db, close } = await openSqlite({ directory: folder, synchronous: "NORMAL" });
  db.exec("PRAGMA foreign_keys=OFF");
  for (const { name, columns } of tables) {
    const insert = db.prepare(`INSERT INTO ${name} (${columns.map((column) => column.name)}) VALUES (${columns.map(() => "?")})`);
    for (const [at, row] of (rows[name] ?? []).entries())
      insert.run(
        ...row.map((value, column) => (unique[name]?.includes(columns[column]?.name ?? "") ? `${value} ${at}` : (value as string))),
      );
  }
  await close();
}

if (postgresMissing !== undefined) it("data are moved to PostgreSQL", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("a migration", { timeout: 120_000 }, () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => server.remove(), startMsMax);

    const migrate = (from: string, to: string) => migrateData({ from, to, progress: () => {}, warn: () => {} });

    it("knows every table of both databases", async () => {
      const url = server.newUrl();
      const side = await openPostgresSide(url);
      onTestFinished(() => side.close());
      expect(await side.tables()).toEqual(await sqliteTables());
      const found = await server.query(`SELECT table_name FROM information_schema.tables WHERE table_schema = '${schemaOf(url)}'`);
      const moved = (await sqliteTables()).map(({ name }) => name);
      // Tables that only PostgreSQL has: its version, its owner, its nodes. Contents of blobs are moved separately.
      expect(found.map(({ table_name: name }) => name).sort()).toEqual([...moved, "blob_chunk", "meta", "node", "shard"].sort());
    });

    it("refuses to move anything when one side has a table or a column that the other does not have", async () => {
      const url = server.newUrl();
      await (await openPostgresSide(url)).close();
      await server.query(
        `CREATE TABLE ${schemaOf(url)}.secret_plan (id TEXT PRIMARY KEY); ALTER TABLE ${schemaOf(url)}.run ADD COLUMN mood TEXT`,
      );
      const folder = newFolder();
      await fill(folder, [], {});
      await expect(migrate(folder, url)).rejects.toThrow(/run\.mood \(text\).*secret_plan, secret_plan\.id \(text\)/);
      expect(existsSync(join(folder, "moved"))).toBe(false);
    });

    it("keeps all rows of all tables, in both directions", async () => {
      const tables = await sqliteTables();
      await fc.assert(
        fc.asyncProperty(rowsFor(tables), async (rows) => {
          const [folder, back, url] = [newFolder(), newFolder(), server.newUrl()];
          await fill(folder, tables, rows);
          const before = await rowsIn(folder);
          const there = await migrate(folder, url);
          expect(there.rows).toBe(Object.values(before).reduce((sum, each) => sum + each.length, 0));
          await migrate(url, back);
          expect(await rowsIn(back)).toEqual(before);
        }),
        { numRuns },
      );
    });

    it("reads tables in pages, also with equal rows and with rows that are larger than a page", async () => {
      const tables = await sqliteTables();
      const hands = Array.from({ length: 2_500 }, (_, at) => [at % 7, "same", at % 3]);
      const column = (table: string, name: string) =>
        tables.find((each) => each.name === table)?.columns.findIndex((each) => each.name === name) ?? 0;
      const messages = Array.from({ length: 30 }, (_, at) =>
        column("message", "body") === 0 ? ["x".repeat(400_000), at] : [at, "x".repeat(400_000)],
      );
      const [folder, back, url] = [newFolder(), newFolder(), server.newUrl()];
      await fill(folder, tables, { hand_out: hands, message: messages });
      const before = await rowsIn(folder);
      await migrate(folder, url);
      await migrate(url, back);
      expect(await rowsIn(back)).toEqual(before);
    });

    it("refuses a NUL, which PostgreSQL cannot store, and names the row", async () => {
      const folder = newFolder();
      const { db, close } = await openSqlite({ directory: folder });
      // A driver may cut a text at a NUL.
      db.exec("INSERT INTO property VALUES ('good', '1'), ('bad', 'with ' || char(0))");
      await close();
      await expect(migrate(folder, server.newUrl())).rejects.toThrow(
        /^A text in the row \["bad.*"\] of the table property has a NUL character, which PostgreSQL cannot store/,
      );
    });

    describe("marks", () => {
      async function small() {
        const folder = newFolder();
        await fill(folder, await sqliteTables(), { bus_topic: [[1, "topic"]] });
        return { folder, url: server.newUrl() };
      }

      it("prevent servers from using the source, until a person removes them", async () => {
        const { folder, url } = await small();
        await migrate(folder, url);
        const start = () => openEngine({ directory: folder });
        await expect(start()).rejects.toThrow(
          new RegExp(
            `^The data in ${folder} were moved to postgres://longshore@.* at 20.*: start the server there\\. .*remove the file ${join(folder, "moved")}\\.$`,
          ),
        );
        rmSync(join(folder, "moved"));
        await (await start()).close();
        await migrate(url, newFolder());
        const there = () => openPostgres({ url });
        await expect(there()).rejects.toThrow(/were moved to \/.* run: DELETE FROM (test_\d+)\.property WHERE name = 'moved'\.$/);
        await server.query(`DELETE FROM ${schemaOf(url)}.property WHERE name = 'moved'`);
        await (await there()).close();
      });

      it("prevent servers from using an incomplete target, and the same migration can be run again", async () => {
        const { folder, url } = await small();
        const back = newFolder();
        for (const [from, to, start] of [
          [folder, url, () => openPostgres({ url })],
          [url, back, () => openEngine({ directory: back })],
        ] as const) {
          const interrupted = migrateData({
            from,
            to,
            warn: () => {},
            progress: ({ what }) => {
              if (what === "checked rows") throw new Error("power cut");
            },
          });
          await expect(interrupted).rejects.toThrow("power cut");
          await expect(start()).rejects.toThrow(/has an incomplete copy of the data in .*Run the same `longshore migrate` again/);
          await migrate(from, to);
          await (await start()).close();
        }
        expect((await rowsIn(back)).bus_topic).toEqual([[1, "topic 0"]]);
      });

      it("allow the same migration once more when it ended between both marks, and no other", async () => {
        const { folder, url } = await small();
        const source = await openSourceFolder(folder, () => {});
        const target = await openPostgresSide(url);
        const cut: Side = {
          ...target,
          mark: (name, mark) => (mark === null ? Promise.reject(new Error("power cut")) : target.mark(name, mark)),
        };
        await expect(move(source, cut)).rejects.toThrow("power cut");
        await Promise.all([source.close(), target.close()]);
        await expect(migrate(folder, server.newUrl())).rejects.toThrow("were moved to");
        await migrate(folder, url);
        await (await openPostgres({ url })).close();
      });

      it("are not needed before a migration begins: a target with data is refused", async () => {
        const [one, other] = [await small(), await small()];
        await migrate(one.folder, one.url);
        await expect(migrate(other.folder, one.url)).rejects.toThrow(/is not empty: the table bus_topic has 1 rows\./);
        writeFileSync(join(one.folder, "note"), "mine");
        await expect(migrate(one.url, one.folder)).rejects.toThrow(/is not an empty folder/);
        expect(existsSync(join(other.folder, "moved"))).toBe(false);
      });
    });

    it("refuses a source or target that a server uses", async () => {
      const folder = newFolder();
      const engine = await openEngine({ directory: folder });
      onTestFinished(() => engine.close());
      await expect(migrate(folder, server.newUrl())).rejects.toThrow("Another Longshore server is using");
      const url = server.newUrl();
      const store = await openPostgres({ url });
      onTestFinished(() => store.close());
      await expect(migrate(url, newFolder())).rejects.toThrow(/Another Longshore server \(.*\) is using the schema/);
    });

    it("detects when the received rows differ from the sent rows", async () => {
      const folder = newFolder();
      await fill(folder, await sqliteTables(), { bus_topic: [[1, "topic"]] });
      const source = await openSourceFolder(folder, () => {});
      const target = await openPostgresSide(server.newUrl());
      onTestFinished(() => target.close());
      onTestFinished(() => source.close());
      const lossy: Side = { ...target, insert: (table, rows) => target.insert(table, table.name === "bus_topic" ? [[1, "tropic"]] : rows) };
      await expect(move(source, lossy)).rejects.toThrow(/The table bus_topic in .* has rows with other values/);
      expect(source.marks.moved).toBeNull();
    });

    it("moves open runs, parts, logs, blobs, records and documents, and the engine continues with them", async () => {
      const [folder, url, back] = [newFolder(), server.newUrl(), newFolder()];
      const content = Buffer.alloc(700_000, "blob");
      const first = await openEngine({ directory: folder });
      const steps = ["a", "b"].map((id, at) => ({ id, task: id, input: null, after: at === 0 ? [] : ["a"] }));
      await first.runs.define({ name: "w", dialect: "code", source: JSON.stringify({ name: "w", steps, output: null }) });
      const { run } = await first.runs.start({ workflow: "w", input: '{"n":12345678901234567890}', alias: "one" });
      const claim = (engine: typeof first, lane: string) =>
        engine.board.claim({ reach: { names: [lane], labels: [] }, holder: "ann", termMs: 60_000, max: 1 });
      const [held] = await claim(first, "a");
      const hold = { taskId: held?.id ?? "", grant: held?.grant ?? 0, holder: "ann" };
      expect(await first.parts.put(hold, [{ uid: "p", value: '{"half":"\\ud83d"}' }])).toBe("ok");
      const chunks = [{ stream: "stdout" as const, sequence: 0, data: "hello\n", at: 1 }];
      await first.logStore.append({ taskId: hold.taskId, runId: run.id, attempt: 0, grant: hold.grant, chunks });
      const { hash } = await first.blobs.put(content, { note: "letters" });
      await first.busLog.join("group", ["news"], "earliest");
      await first.busLog.append([{ topic: "news", key: "k", value: "one" }]);
      await first.outboxStore.add("sender", { topic: "news", key: "k", dedupId: "1", value: "two" });
      await first.documents.keepDocument({ kind: "note", name: "n", version: 1, body: "[1]" });
      await first.close();

      await migrate(folder, url);
      const second = await openEngine({ directory: null, openStore: () => openPostgres({ url }) });
      expect(await buffer((await second.blobs.get(hash))?.content as never)).toEqual(content);
      expect(await second.board.complete(hold, '"first"')).toBe("ok");
      expect((await second.parts.read(hold.taskId, 0, 10)).parts).toMatchObject([{ uid: "p", value: '{"half":"\\ud83d"}' }]);
      expect(await second.logStore.lastLine(hold.taskId)).toBe("hello");
      expect((await second.busLog.take({ group: "group", member: "m", topics: ["news"], max: 10 }))?.records).toMatchObject([
        { key: "k", value: Buffer.from("one") },
      ]);
      await second.close();

      await migrate(url, back);
      const third = await openEngine({ directory: back });
      onTestFinished(() => third.close());
      const [last] = await claim(third, "b");
      expect(await third.board.complete({ taskId: last?.id ?? "", grant: last?.grant ?? 0, holder: "ann" }, '"second"')).toBe("ok");
      expect(await third.reader.runByAlias("one")).toMatchObject({ id: run.id, state: "succeeded", input: '{"n":12345678901234567890}' });
      expect(await buffer((await third.blobs.get(hash))?.content as never)).toEqual(content);
      expect(await third.outboxStore.pending("other", 0, 10)).toMatchObject([{ dedupId: "1", value: "two" }]);
      expect(await third.documents.document("note", "n")).toMatchObject({ body: "[1]" });
      expect(JSON.parse(readFileSync(join(folder, "moved"), "utf8"))).toMatchObject({ place: expect.stringContaining(schemaOf(url)) });
    });
  });

function schemaOf(url: string): string {
  return new URL(url).searchParams.get("schema") as string;
}
