import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { diagnose } from "./doctor.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "longshore-doctor-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function about(directory: string, subject: string) {
  return (await diagnose(directory)).find((finding) => finding.about === subject);
}

it("measures the disk of a folder that does not exist yet, and leaves nothing behind", async () => {
  const place = folder();
  const findings = await diagnose(join(place, "deep/data"));
  expect(findings.map((finding) => finding.about)).toEqual(["Node", "SQLite", "Disk", "Space", "Data", "Clock"]);
  expect(findings.filter((finding) => finding.state === "bad")).toEqual([]);
  expect(readdirSync(place)).toEqual([]);
});

it("warns of a write-ahead log that was not merged into the data file", async () => {
  const place = folder();
  writeFileSync(join(place, "longshore.db"), "");
  writeFileSync(join(place, "longshore.db-wal"), "");
  expect(await about(place, "Data")).toMatchObject({ state: "ok", figures: { dataBytes: 0, walBytes: 0 } });
  // A sparse file uses no space.
  truncateSync(join(place, "longshore.db-wal"), 100 * 1024 * 1024);
  expect(await about(place, "Data")).toMatchObject({ state: "warn", seen: "0 bytes, write-ahead log 100.0 MiB" });
});

it("reports data with times after the current time", async () => {
  const place = folder();
  writeFileSync(join(place, "longshore.db"), "");
  expect(await about(place, "Clock")).toMatchObject({ state: "ok" });
  const tomorrow = new Date(Date.now() + 86_400_000);
  utimesSync(join(place, "longshore.db"), tomorrow, tomorrow);
  expect(await about(place, "Clock")).toMatchObject({ state: "bad", advice: expect.stringContaining("future") });
});

it("reports that a folder cannot be written, and suggests another", async () => {
  const place = folder();
  mkdirSync(join(place, "data"));
  writeFileSync(join(place, "data/file"), "");
  // Not even root can write into a file that is in the place of a folder.
  expect(await about(join(place, "data/file"), "Disk")).toMatchObject({ state: "bad", advice: expect.stringContaining("--data") });
});
