import { expect, it } from "vitest";
import type { LogChunk } from "./api.ts";
import { LinePrinter } from "./line-printer.ts";

function printer(named: boolean, isTTY = false) {
  let text = "";
  const output = { write: (more: string) => (text += more), isTTY };
  return { printer: new LinePrinter(output, (_, words) => words, named), text: () => text };
}

function chunk(step: string, data: string, more: Partial<LogChunk> = {}): LogChunk {
  return { position: 1, taskId: step, step, attempt: 1, stream: "stdout", sequence: 0, at: 0, data, ...more };
}

it("joins lines that arrive in pieces, separately for each step", () => {
  const { printer: lines, text } = printer(true);
  lines.add(chunk("a", "one\ntw"));
  lines.add(chunk("b", "other\r\n"));
  lines.add(chunk("a", "o\nrest"));
  expect(text()).toBe("a one\nb other\na two\n");
  lines.end();
  lines.end();
  expect(text()).toBe("a one\nb other\na two\na rest\n");
});

it("keeps the two streams and the attempts of a step apart", () => {
  const { printer: lines, text } = printer(false);
  lines.add(chunk("a", "out"));
  lines.add(chunk("a", "err\n", { stream: "stderr" }));
  lines.add(chunk("a", "second\n", { attempt: 2 }));
  lines.add(chunk("a", "put\n"));
  expect(text()).toBe("err\nsecond\noutput\n");
});

it("writes bytes unchanged to a file, and escapes them in a terminal", () => {
  const alarm = `${String.fromCharCode(27)}[2Jx\u0007\n`;
  const [file, terminal] = [printer(false), printer(false, true)];
  file.printer.add(chunk("a", alarm));
  terminal.printer.add(chunk("a", alarm));
  expect(file.text()).toBe(alarm);
  expect(terminal.text()).toBe("x\n");
});
