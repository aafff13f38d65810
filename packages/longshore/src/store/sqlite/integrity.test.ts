import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openDatabase } from "./driver.ts";
import { checkPages } from "./integrity.ts";

const pageBytes = 4_096;

async function filled(): Promise<{ file: string; bytes: Buffer }> {
  const folder = mkdtempSync(join(tmpdir(), "longshore-pages-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "a.db");
  const db = await openDatabase(file, { synchronous: "NORMAL" });
  db.exec(
    "CREATE TABLE run (id TEXT PRIMARY KEY, state TEXT NOT NULL, input TEXT) WITHOUT ROWID; CREATE INDEX run_state ON run (state, id)",
  );
  db.exec("CREATE TABLE log (id INTEGER PRIMARY KEY, chunks TEXT)");
  db.transaction(() => {
    const run = db.prepare("INSERT INTO run VALUES (?, ?, ?)");
    const log = db.prepare("INSERT INTO log (chunks) VALUES (?)");
    for (let at = 0; at < 400; at++) run.run(`run-${String(at).padStart(5, "0")}`, at % 2 === 0 ? "succeeded" : "failed", "x".repeat(100));
    for (let at = 0; at < 10; at++) log.run("y".repeat(9_000));
  });
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  copyFileSync(file, `${file}.copy`);
  db.close();
  return { file: `${file}.copy`, bytes: readFileSync(`${file}.copy`) };
}

async function found(file: string, bytes: Buffer): Promise<string[]> {
  writeFileSync(file, bytes);
  const db = await openDatabase(file, { readOnly: true });
  const findings = checkPages(db, file);
  db.close();
  return findings;
}

/** The pages of b-trees. Overflow pages of long values are excluded, because they contain only bytes of the value. */
function treePages(bytes: Buffer): number[] {
  const pages = Array.from({ length: bytes.length / pageBytes }, (_, at) => at);
  return pages.filter((page) => page > 0 && [2, 5, 10, 13].includes(bytes[page * pageBytes] as number));
}

it("finds no damage in an intact file", async () => {
  const { file, bytes } = await filled();
  expect(await found(file, bytes)).toEqual([]);
});

it("finds every tree page that was zeroed, overwritten with noise or replaced by another page, and names the table", async () => {
  const { file, bytes } = await filled();
  const pages = treePages(bytes);
  expect(pages.length).toBeGreaterThan(20);
  for (const page of pages) {
    const place = page * pageBytes;
    const other = (pages[(pages.indexOf(page) + 1) % pages.length] as number) * pageBytes;
    const damages = {
      zeros: Buffer.alloc(pageBytes),
      noise: Buffer.from(Array.from({ length: pageBytes }, (_, at) => (at * 7_919 + page * 31) % 251)),
      other: bytes.subarray(other, other + pageBytes),
    };
    for (const [kind, damage] of Object.entries(damages)) {
      const damaged = Buffer.from(bytes);
      damage.copy(damaged, place);
      const findings = await found(file, damaged);
      expect({ page, kind, count: findings.length }).toEqual({ page, kind, count: 1 });
      expect(findings[0]).toMatch(/^The data file \S+ is damaged in the tables? (log|run|log, run): /);
    }
  }
});
