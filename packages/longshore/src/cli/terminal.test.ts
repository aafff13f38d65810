import { describe, expect, it } from "vitest";
import { columnsOf, fit, oneLine, painter, printable, table, widthOf } from "./terminal.ts";

const control = String.fromCharCode(27);
const plain = painter({ write: () => true }, {});

describe("colours", () => {
  const terminal = { write: () => true, isTTY: true };

  it("are used in a terminal and nowhere else", () => {
    expect(painter(terminal, {})("red", "x")).toBe(`${control}[31mx${control}[39m`);
    expect(plain("red", "x")).toBe("x");
  });

  it("are switched off by NO_COLOR and a dumb terminal, and on by FORCE_COLOR", () => {
    expect(painter(terminal, { NO_COLOR: "1" })("red", "x")).toBe("x");
    expect(painter(terminal, { TERM: "dumb" })("red", "x")).toBe("x");
    expect(painter({ write: () => true }, { FORCE_COLOR: "1" })("red", "x")).not.toBe("x");
    expect(painter({ write: () => true }, { FORCE_COLOR: "1", NO_COLOR: "1" })("red", "x")).toBe("x");
  });
});

it("lines have the width of the terminal, and no limit in a file", () => {
  const write = () => true;
  expect([columnsOf({ write, isTTY: true, columns: 80 }), columnsOf({ write, isTTY: true, columns: 0 })]).toEqual([80, 100]);
  expect(columnsOf({ write, columns: 80 })).toBe(Infinity);
});

describe("text from other programs", () => {
  it("cannot control the terminal", () => {
    expect(oneLine(`${control}[2Jred ${control}[31malert${control}[0m\r\nnext\tcolumn\u0007`)).toBe("red alert next column");
  });

  it("keeps only our own styles in a line or a table", () => {
    const paint = painter({ write: () => true }, { FORCE_COLOR: "1" });
    const name = `evil${control}[2J${control}]0;title\u0007\u009b31m\nrow${control}[8m`;
    const clean = "evil ]0;title  31m row";
    expect(printable(`${paint("red", "failed")} ${name}`)).toBe(`${paint("red", "failed")} ${clean}`);
    expect(table(["NAME"], [[name]], plain)).toEqual(["NAME", clean]);
    expect(printable(`${control}${control}[2J[2Jx`)).toBe(" [2Jx");
  });

  it("is cut to the available width", () => {
    expect(fit("abcdef", 6)).toBe("abcdef");
    expect(fit("abcdefg", 6)).toBe("abcde…");
    expect(fit("ab", 0)).toBe("…");
  });
});

it("a table aligns its columns, also when their text is coloured", () => {
  const paint = painter({ write: () => true }, { FORCE_COLOR: "1" });
  const lines = table(
    ["NAME", "STATE", ""],
    [
      ["a", paint("red", "failed"), "x"],
      ["long-name", "ok", ""],
    ],
    plain,
  );
  expect(lines.map(widthOf)).toEqual([widthOf("long-name  failed  "), widthOf("long-name  failed  x"), widthOf("long-name  ok      ")]);
});

it("a table is cut to the width of the terminal: the widest columns first, and never the first one", () => {
  const paint = painter({ write: () => true }, { FORCE_COLOR: "1" });
  const id = "01M7QGMZGKFHYS9CD9AYFZY6YV";
  const rows = [
    [id, "order", paint("red", "failed"), "2026-11-18 14:23:24", "the bank did not answer within thirty seconds"],
    [id, "a-workflow-with-a-long-name", "ok", "2026-11-18 14:23:24", ""],
  ];
  const lines = table(["RUN", "WORKFLOW", "STATE", "STARTED", ""], rows, plain, 80);
  for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(80);
  expect(lines[1]).toMatch(/^01M7QGMZGKFHYS9CD9AYFZY6YV {2}order .*failed.* {2}2026-11-18 \S*… {2}the bank.*…$/);
  expect(lines[2]).toMatch(/a-workflow-w…/);
  // A style that begins in the visible part also ends there.
  const [, coloured] = table(["A", "B"], [["a", paint("red", "x".repeat(50))]], plain, 20);
  expect(coloured).toBe(`a  ${paint("red", `${"x".repeat(16)}…`)}`);
  // Without a terminal, no text is cut.
  expect(table(["A", "B"], [["a", "x".repeat(500)]], plain)[1]).toBe(`a  ${"x".repeat(500)}`);
});
