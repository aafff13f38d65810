import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openDatabase } from "./driver.ts";
import { checkFilePages } from "./integrity.ts";
import { salvage } from "./salvage.ts";
import { migrate } from "./schema.ts";

const pageBytes = 4_096;
const runs = 200;
const leaf = 10;

async function filled(): Promise<{ folder: string; bytes: Buffer }> {
  const folder = mkdtempSync(join(tmpdir(), "longshore-salvage-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const db = await openDatabase(join(folder, "whole.db"), { synchronous: "NORMAL" });
  migrate(db);
  db.exec("PRAGMA foreign_keys=OFF");
  const insert = db.prepare(
    `INSERT INTO run (id, workflow, definition_id, state, input, created_at, left_count, failed_count, retries, parent_attempt)
     VALUES (?, 'w', 'd', 'running', ?, 1, 1, 0, 0, 0)`,
  );
  db.transaction(() => {
    for (let at = 0; at < runs; at++) insert.run(`r${at}`, `"of the run ${"x".repeat(500)}"`);
    for (let at = 0; at < 10; at++) db.exec("INSERT INTO hand_out VALUES ('key', 1, 2)");
  });
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
  return { folder, bytes: readFileSync(join(folder, "whole.db")) };
}

it("loses the rows of a damaged page and no others, keeps the damaged file, and leaves an intact one", async () => {
  const { folder, bytes } = await filled();
  const page = (at: number) => bytes.subarray(at * pageBytes, (at + 1) * pageBytes);
  const all = Array.from({ length: bytes.length / pageBytes }, (_, at) => at);
  const leaves = all.filter((at) => page(at)[0] === leaf && page(at).includes("of the run"));
  expect(leaves.length).toBeGreaterThan(20);
  for (const at of leaves) {
    const file = join(folder, `${at}.db`);
    const damaged = Buffer.from(bytes).fill(0, at * pageBytes, (at + 1) * pageBytes);
    writeFileSync(file, damaged);
    const rows = page(at).readUInt16BE(3);
    expect(await salvage(file)).toBe(
      `Rows were lost: ${runs - rows} rows of the table run are left. The damaged file is kept as ${file}.damaged.`,
    );
    expect(await checkFilePages(file)).toEqual([]);
    expect(readFileSync(`${file}.damaged`).equals(damaged)).toBe(true);
    expect(existsSync(`${file}.salvaged`)).toBe(false);
  }
});

it("loses nothing of a file in which only indexes are damaged", async () => {
  const { folder, bytes } = await filled();
  const index = bytes.indexOf("wr19", 0, "latin1");
  const file = join(folder, "index.db");
  writeFileSync(
    file,
    Buffer.from(bytes).fill(0, Math.floor(index / pageBytes) * pageBytes, (Math.floor(index / pageBytes) + 1) * pageBytes),
  );
  expect(await checkFilePages(file)).toHaveLength(1);
  expect(await salvage(file)).toMatch(/^Every row could be read\./);
  const db = await openDatabase(file, { readOnly: true });
  expect(db.prepare("SELECT count(*) AS count FROM run").get()).toEqual({ count: runs });
  expect(db.prepare("SELECT count(*) AS count FROM hand_out").get()).toEqual({ count: 10 });
  db.close();
});
