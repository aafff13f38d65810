// Shows the terminal colours in log lines. All other terminal codes are removed, and marks that change the direction of text are shown as
// codes. So a line of a log cannot imitate another line.

export interface Span {
  readonly text: string;
  /** Classes of style.css. */
  readonly classes: string;
}

const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

interface Style {
  color: string;
  isBold: boolean;
  isDim: boolean;
}

export function parseAnsi(line: string): Span[] {
  const spans: Span[] = [];
  const style: Style = { color: "", isBold: false, isDim: false };
  const add = (text: string) => {
    const visible = withoutControls(text);
    if (visible !== "") spans.push({ text: visible, classes: classesOf(style) });
  };
  let at = 0;
  for (let start = line.indexOf("\u001b", at); start >= 0; start = line.indexOf("\u001b", at)) {
    add(line.slice(at, start));
    const end = endOfSequence(line, start);
    if (line[start + 1] === "[" && line[end - 1] === "m") apply(style, line.slice(start + 2, end - 1));
    at = end;
  }
  add(line.slice(at));
  return spans;
}

/** The place after an escape sequence. */
function endOfSequence(line: string, start: number): number {
  let at = start + 2;
  const kind = line[start + 1];
  if (kind === "[") {
    while (at < line.length && !isFinal(line.charCodeAt(at))) at++;
    return Math.min(line.length, at + 1);
  }
  if (kind === "]") {
    while (at < line.length && line[at] !== "\u0007" && line[at] !== "\u001b") at++;
    return Math.min(line.length, line[at] === "\u001b" ? at + 2 : at + 1);
  }
  return Math.min(line.length, at);
}

function isFinal(code: number): boolean {
  return code >= 0x40 && code <= 0x7e;
}

function apply(style: Style, text: string): void {
  for (const part of text.split(";")) {
    const code = part === "" ? 0 : Number(part);
    if (code === 0) Object.assign(style, { color: "", isBold: false, isDim: false });
    else if (code === 1) style.isBold = true;
    else if (code === 2) style.isDim = true;
    else if (code === 22) Object.assign(style, { isBold: false, isDim: false });
    else if (code === 39) style.color = "";
    else if (code >= 30 && code <= 37) style.color = names[code - 30] ?? "";
    else if (code >= 90 && code <= 97) style.color = names[code - 90] ?? "";
    // 38 and 48 are followed by a colour of another kind.
    else if (code === 38 || code === 48) return;
  }
}

function classesOf({ color, isBold, isDim }: Style): string {
  return [color === "" ? "" : `ansi-${color}`, isBold ? "ansi-bold" : "", isDim ? "dim" : ""].filter((name) => name !== "").join(" ");
}

/** Marks that change the direction of text, and control characters. */
function withoutControls(text: string): string {
  let clean = "";
  for (const letter of text) {
    const code = letter.codePointAt(0) ?? 0;
    if (code === 9) clean += "    ";
    else if (code < 0x20 || code === 0x7f) continue;
    else if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) clean += `⟨U+${code.toString(16).toUpperCase()}⟩`;
    else clean += letter;
  }
  return clean;
}
