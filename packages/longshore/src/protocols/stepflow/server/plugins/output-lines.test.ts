import { describe, expect, it } from "vitest";
import { TestClock } from "../../../../testing/clock.ts";
import { LineCutter, LineLog } from "./output-lines.ts";

describe("the output of a process", () => {
  it("is cut into lines, for any pieces", () => {
    const lines: string[] = [];
    const cutter = new LineCutter((line) => lines.push(line));
    for (const byte of Buffer.from("one\r\né\n\nlast")) cutter.write(Buffer.of(byte));
    cutter.end();
    expect(lines).toEqual(["one", "é", "", "last"]);
  });

  it("without a line end is kept only up to the maximum length of a line", () => {
    const lines: string[] = [];
    const cutter = new LineCutter((line) => lines.push(line));
    for (let at = 0; at < 100; at++) cutter.write(Buffer.alloc(1_000, 0x78));
    cutter.write(Buffer.from("\nnext\n"));
    expect(lines.map((line) => line.length)).toEqual([4_010, 4]);
    expect(lines[0]).toMatch(/x \.\.\. \(cut\)$/);
  });

  it("is limited in the log, and its last lines are kept", async () => {
    const clock = new TestClock();
    const told: string[] = [];
    const log = new LineLog(clock, (line) => told.push(line));
    for (let at = 0; at < 5_000; at++) log.line(`line ${at}`);
    log.line("  ");
    expect(told).toHaveLength(1_000);
    expect(log.tail.split("\n")).toEqual(Array.from({ length: 20 }, (_, at) => `line ${4_980 + at}`));
    clock.jump(10_000);
    log.line("calm again");
    expect(told.slice(1_000)).toEqual(["... 4000 more lines were left out", "calm again"]);
  });
});
