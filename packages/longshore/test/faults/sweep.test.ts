import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { describeSweep, missingForSweep, sweep } from "./sweep.ts";
import { SweepDisk } from "./sweep-disk.ts";
import { readOps } from "./sweep-trace.ts";
import { playWorkload } from "./sweep-workload.ts";

/** Hundreds of starts of a server: seconds on an idle machine. */
const SWEEP_MS_MAX = 600_000;

it(
  "a crash at any write, sync or rename of the store loses nothing that was acknowledged and does nothing twice",
  async (context) => {
    if (missingForSweep) return context.skip(`needs ${missingForSweep}`);
    const report = await sweep(1);
    process.stdout.write(`${describeSweep(report)}\n`);
    expect(report.lost).toEqual([]);
    expect(report.duplicated).toEqual([]);
    expect(report.points).toBeGreaterThan(300);
    expect(report.answered).toBeGreaterThan(20);
  },
  SWEEP_MS_MAX,
);

it("the workload writes every table of the store", async () => {
  const directory = mkdtempSync(join(tmpdir(), "longshore-sweep-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  let untouched = () => [] as unknown[];
  let left: unknown[] = ["not played"];
  const ledger = {
    sent() {},
    answered() {
      left = untouched();
    },
  };
  await playWorkload(directory, 1, ledger, (db) => {
    db.exec("CREATE TEMP TABLE untouched AS SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    const names = db.prepare("SELECT name FROM temp.untouched");
    for (const { name } of names.all())
      db.exec(`CREATE TEMP TRIGGER on_${name} AFTER INSERT ON main.${name} BEGIN DELETE FROM untouched WHERE name = '${name}'; END`);
    untouched = () => names.all().map(({ name }) => name);
  });
  expect(left).toEqual([]);
});

it(
  "the sweep detects a disk that reports a sync without doing it",
  async (context) => {
    if (missingForSweep) return context.skip(`needs ${missingForSweep}`);
    const report = await sweep(1, { lies: true, every: 50 });
    expect(report.lost.length).toBeGreaterThan(5);
  },
  SWEEP_MS_MAX,
);

const hex = (text: string): string => [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");

it("a recording is read in the order in which its calls ended", () => {
  const file = `24<${hex("/d/f")}>`;
  const trace = [
    `7 openat(AT_FDCWD<${hex("/")}>, "${hex("/d/f")}", O_RDWR|O_CREAT, 0600) = ${file}`,
    `7 pwrite64(${file}, "${hex("late")}", 4, 0 <unfinished ...>`,
    `8 pwrite64(${file}, "${hex("soon")}", 4, 8) = 4`,
    "7 <... pwrite64 resumed>) = 4",
    `7 pwrite64(${file}, "${hex("not")}", 3, 0) = -1 ENOSPC (No space left on device)`,
    `7 fdatasync(${file}) = 0`,
    `7 rename("${hex("/d/f")}", "${hex("/d/g")}") = 0`,
    `7 unlink("${hex("/e/other")}") = 0`,
  ];
  expect(readOps(trace.join("\n"), (path) => path.startsWith("/d/"))).toEqual([
    { kind: "create", path: "/d/f", empties: false },
    { kind: "write", path: "/d/f", data: Buffer.from("soon"), at: 8 },
    { kind: "write", path: "/d/f", data: Buffer.from("late"), at: 0 },
    { kind: "sync", path: "/d/f" },
    { kind: "rename", path: "/d/f", to: "/d/g" },
  ]);
});

it("a power cut loses what was not synced: bytes of files, and names in folders", () => {
  const disk = new SweepDisk("/d");
  const left = (crash: "kill" | "cut" | "late" | "torn") =>
    Object.fromEntries([...disk.after(crash)].map(([path, content]) => [path, content.toString()]));
  disk.apply({ kind: "create", path: "/d/f", empties: false });
  disk.apply({ kind: "write", path: "/d/f", data: Buffer.from("one "), at: 0 });
  expect([left("kill"), left("cut")]).toEqual([{ f: "one " }, {}]);
  disk.apply({ kind: "sync", path: "/d/f" });
  for (const [at, text] of ["two ", "more"].entries()) disk.apply({ kind: "write", path: "/d/f", data: Buffer.from(text), at: 4 + 4 * at });
  expect([left("cut"), left("late"), left("torn")]).toEqual([{ f: "one " }, { f: "one \0\0\0\0more" }, { f: "one " }]);
  disk.apply({ kind: "write", path: "/d/f", data: Buffer.alloc(1_500, "x"), at: 0 });
  // A sector is written completely or not at all.
  expect(left("torn")).toEqual({ f: "x".repeat(512) });
  disk.apply({ kind: "rename", path: "/d/f", to: "/d/g" });
  expect(left("cut")).toEqual({ f: "one " });
  disk.apply({ kind: "sync", path: "/d" });
  expect(left("cut")).toEqual({ g: "one " });
});
