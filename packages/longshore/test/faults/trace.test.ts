import { expect, it } from "vitest";
import { readTrace } from "./trace.ts";

const WAL = "24</data/longshore.db-wal>";
const written = `pwrite64(${WAL}, "7\\177\\6\\202", 32, 0) = 32`;
const synced = `fdatasync(${WAL}) = 0`;
const answered = (status: number): string =>
  `write(27<TCP:[127.0.0.1:4500->127.0.0.1:51234]>, "HTTP/1.1 ${status} OK\\r\\n"..., 114) = 114`;
const trace = (...lines: string[]): string => `${lines.join("\n")}\n`;

it("a response after the sync of earlier writes is distinguished from a response before it", () => {
  expect(readTrace(trace(written, written, synced, answered(200)))).toEqual([{ status: 200, syncs: 1, unsynced: false }]);
  expect(readTrace(trace(written, answered(200), synced))).toEqual([{ status: 200, syncs: 0, unsynced: true }]);
  expect(readTrace(trace(written, synced, written, answered(200)))).toEqual([{ status: 200, syncs: 1, unsynced: true }]);
});

it("a sync that failed, or of another file, does not count", () => {
  const failed = `fdatasync(${WAL}) = -1 EIO (Input/output error)`;
  const other = "fdatasync(25</data/longshore.db>) = 0";
  expect(readTrace(trace(written, failed, other, answered(503)))).toEqual([{ status: 503, syncs: 0, unsynced: true }]);
});

it("syncs are counted separately for each response", () => {
  const answers = readTrace(trace(written, synced, answered(201), answered(200), written, synced, written, synced, answered(202)));
  expect(answers.map(({ status, syncs }) => [status, syncs])).toEqual([
    [201, 1],
    [200, 0],
    [202, 2],
  ]);
});
