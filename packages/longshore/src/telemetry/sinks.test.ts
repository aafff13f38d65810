import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { Notice } from "../runner/notices.ts";
import type { LogRecord } from "./records.ts";
import { FileSink, lineOf, stderrSink } from "./sinks.ts";

const record: LogRecord = {
  atMs: Date.UTC(2025, 0, 15, 10, 30),
  level: "INFO",
  message: "Processing records",
  logger: "longshore.process_data",
  context: { flow_id: "sha256:abc123", run_id: "run-12345", step_id: "process_step" },
  trace: { traceId: "a1b2c3d4e5f67890a1b2c3d4e5f67890", spanId: "1234567890abcdef" },
  fields: { rows: 3 },
};

it("[S-OBS-10] a line is one JSON object with the guide's keys, and other known fields", () => {
  expect(lineOf(record)).toMatch(/^\{.*\}\n$/);
  expect(JSON.parse(lineOf(record))).toEqual({
    timestamp: "2025-01-15T10:30:00.000Z",
    level: "INFO",
    message: "Processing records",
    logger: "longshore.process_data",
    flow_id: "sha256:abc123",
    run_id: "run-12345",
    step_id: "process_step",
    trace_id: "a1b2c3d4e5f67890a1b2c3d4e5f67890",
    span_id: "1234567890abcdef",
    rows: 3,
  });
  expect(JSON.parse(lineOf({ ...record, context: {}, trace: undefined, fields: {} }))).not.toHaveProperty("trace_id");
});

it("a line keeps its own keys, and is written also when JSON refuses a field", () => {
  expect(JSON.parse(lineOf({ ...record, fields: { run_id: "forged", big: 1n } }))).toMatchObject({ run_id: "run-12345", big: "1" });
  expect(JSON.parse(lineOf({ ...record, fields: { run_id: "forged" } }))).toMatchObject({ run_id: "run-12345", _run_id: "forged" });
});

it("lines are written to standard error at once, and to the end of a file", async () => {
  const lines: string[] = [];
  stderrSink((line) => void lines.push(line)).add(record);
  expect(lines).toEqual([lineOf(record)]);
  const folder = mkdtempSync(join(tmpdir(), "longshore-log-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "w.log");
  for (let round = 0; round < 2; round++) {
    const file = new FileSink(path, () => {});
    file.add(record);
    await Promise.all([file.close(), file.close()]);
  }
  expect(readFileSync(path, "utf8")).toBe(lineOf(record).repeat(2));
});

it("a file that cannot be written is reported once, and does no harm", async () => {
  const told: Notice[] = [];
  const file = new FileSink("/nowhere/at/all.log", (notice) => void told.push(notice));
  file.add(record);
  while (told.length === 0) await new Promise((resolve) => setImmediate(resolve));
  file.add(record);
  await file.close();
  expect(told.map(({ message }) => message)).toEqual([
    expect.stringContaining("/nowhere/at/all.log cannot be written"),
    "1 log lines did not reach /nowhere/at/all.log.",
  ]);
});
