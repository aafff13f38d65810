import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { TerminalError } from "../../../core/errors.ts";
import { OutputLines, parseOutputFile, readOutputFile } from "./shell-output.ts";

function collect(...chunks: (string | number[])[]) {
  const texts: string[] = [];
  const lines = new OutputLines((text) => texts.push(text));
  for (const chunk of chunks) lines.write(typeof chunk === "string" ? Buffer.from(chunk) : Uint8Array.from(chunk));
  lines.end();
  return { texts, lines };
}

describe("lines of a command", () => {
  it("joins lines that were split between chunks, and keeps a last line without a newline", () => {
    expect(collect("one\ntw", "o\nthree").texts).toEqual(["one\n", "two\n", "three"]);
  });

  it("replaces bytes that are not UTF-8 by replacement characters, and joins characters that were split between chunks", () => {
    expect(collect([0x61, 0xff, 0x62, 0x0a], [0xc3], [0xa4, 0x0a]).texts).toEqual(["a\ufffdb\n", "ä\n"]);
  });

  it("logs an endless line in pieces", () => {
    const { texts } = collect("x".repeat(70_000), "y");
    expect(texts.map((text) => text.length)).toEqual([70_000, 1]);
  });

  it("reads ::set-output lines, keeps them in the log, and takes the last value of a key", () => {
    const { texts, lines } = collect("::set-output a=1\nnoise ::set-output b=2\n::set-output a=x=y\r\n::set-output empty=\n");
    expect({ ...lines.outputs }).toEqual({ a: "x=y", empty: "" });
    expect(texts.join("")).toContain("::set-output a=1\n");
  });

  it("refuses more outputs than can be reported", () => {
    const { lines } = collect(...Array.from({ length: 30 }, (_, at) => `::set-output k${at}=${"x".repeat(50_000)}\n`));
    expect(() => lines.checkOutputs()).toThrow(TerminalError);
  });

  it("keeps the end of the output", () => {
    expect(collect("a".repeat(5_000), "the end").lines.tail).toMatch(/^a{4089}the end$/);
  });
});

describe("the output file", () => {
  it("has lines of key=value and blocks", () => {
    const text = "url=s3://x?a=b\n\nnotes<<EOF\nfirst\n\n second=2\nEOF\nlast=";
    expect({ ...parseOutputFile(text) }).toEqual({ url: "s3://x?a=b", notes: "first\n\n second=2", last: "" });
  });

  it("refuses other lines and open blocks, naming the line", () => {
    expect(() => parseOutputFile("a=1\nnonsense\n")).toThrow(/Line 2 of \$WFG_OUTPUT: "nonsense"/);
    expect(() => parseOutputFile("a<<EOF\nx\n")).toThrow(/never closed by a line "EOF"/);
  });
});

describe("reading the output file", () => {
  const inFolder = (name: string) => {
    const folder = mkdtempSync(join(tmpdir(), "longshore-test-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    return join(folder, name);
  };

  it("does not hang when a command has replaced it by a pipe", async () => {
    const path = inFolder("pipe");
    execFileSync("mkfifo", [path]);
    await expect(readOutputFile(path)).rejects.toThrow(/is not a file any more/);
  });

  it("is refused when a command has replaced it by a link to an endless device", async () => {
    const path = inFolder("link");
    symlinkSync("/dev/zero", path);
    await expect(readOutputFile(path)).rejects.toThrow(/ELOOP/);
  });
});
