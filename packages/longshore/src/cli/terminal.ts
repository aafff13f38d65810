// Output of the commands: colours only in a terminal, and aligned columns.

const control = String.fromCharCode(27);
/**
 * The codes that start and end a style (ECMA-48, section 8.3.117). Node's own `styleText` checks the process's streams only in some
 * versions.
 */
const codes = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], cyan: [36, 39] } as const;

export type Paint = (style: Style, text: string) => string;
export type Style = keyof typeof codes;

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** For a terminal that does not report its size. */
const columnsDefault = 100;

/** How wide a line may be. Infinity for a file or a pipe: its reader gets whole texts. */
export function columnsOf({ isTTY, columns }: Output): number {
  // A pseudo terminal without a size reports 0.
  return isTTY === true ? columns || columnsDefault : Infinity;
}

/** Colours for a terminal, none for a file or a pipe; NO_COLOR turns them off, FORCE_COLOR on (see no-color.org). */
export function painter(output: Output, env: NodeJS.ProcessEnv = process.env): Paint {
  if (!wantsColour(output, env)) return (_, text) => text;
  return (style, text) => (text === "" ? text : `${control}[${codes[style][0]}m${text}${control}[${codes[style][1]}m`);
}

function wantsColour(output: Output, env: NodeJS.ProcessEnv): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "0") return true;
  return output.isTTY === true && env.TERM !== "dumb";
}

/** Colours, cursor movements and all other sequences that begin with "escape, bracket" (ECMA-48, section 5.4). */
const escapes = new RegExp(`${control}\\[[0-9;?]*[ -/]*[@-~]`, "g");

/** The number of columns of a text. Counts one per character, which is right for our texts and most log lines. */
export function widthOf(text: string): number {
  return [...text.replace(escapes, "")].length;
}

/** One line that fits. Control characters could move the cursor, so they become spaces. A text that is too long ends in "…". */
export function fit(text: string, width: number): string {
  const plain = [...oneLine(text)];
  return plain.length <= width ? plain.join("") : `${plain.slice(0, Math.max(0, width - 1)).join("")}…`;
}

/** Untrusted text, such as a task's log, must not send control codes to the terminal. */
export function oneLine(text: string): string {
  return text
    .replace(escapes, "")
    .replace(/\p{Cc}+/gu, " ")
    .trimEnd();
}

const ours = new RegExp(`^${control}\\[(?:${[...new Set(Object.values(codes).flat())].join("|")})m$`);
const controls = new RegExp(`${escapes.source}|\\p{Cc}`, "gu");

/** A line of ours that contains untrusted text, such as worker names: only our own styles reach the terminal. */
export function printable(line: string): string {
  return line.replace(controls, (found) => (ours.test(found) ? found : found.length === 1 ? " " : ""));
}

/** A column that is cut keeps at least this many characters, or its heading. */
const cutWidthMin = 6;
const gap = 2;

/**
 * Rows under a heading; the last column is not padded. In a terminal of `width` columns, the widest columns are cut until a row fits on one
 * line. The first column is never cut: it has the name by which the reader refers to the row.
 */
export function table(headings: readonly string[], given: readonly (readonly string[])[], paint: Paint, width = Infinity): string[] {
  const rows = given.map((row) => row.map(printable));
  const natural = headings.map((heading, column) => Math.max(heading.length, ...rows.map((row) => widthOf(row[column] ?? ""))));
  const widths = fitting(headings, natural, width);
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => {
        const room = widths[column] ?? 0;
        const text = widthOf(cell) > room ? cut(cell, room) : cell;
        return column === cells.length - 1 ? text : pad(text, room);
      })
      .join(" ".repeat(gap));
  return [paint("dim", line(headings)), ...rows.map(line)];
}

function fitting(headings: readonly string[], natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const least = headings.map((heading, column) => (column === 0 ? Infinity : Math.max(heading.length, cutWidthMin)));
  let over = widths.reduce((sum, each) => sum + each + gap, -gap) - width;
  for (; over > 0; over--) {
    const widest = widths.reduce(
      (best, each, column) => (each > (least[column] as number) && each > (widths[best] ?? 0) ? column : best),
      -1,
    );
    if (widest === -1) break;
    widths[widest] = (widths[widest] as number) - 1;
  }
  return widths;
}

const styled = new RegExp(`(${escapes.source})`);

/** The first characters of a line of ours, with "…" at the end. Styles that it begins also end. */
function cut(text: string, width: number): string {
  let room = Math.max(0, width - 1);
  let hasEnded = false;
  return text
    .split(styled)
    .map((piece, at) => {
      if (at % 2 === 1) return piece;
      const chars = [...piece];
      const kept = chars.slice(0, room).join("");
      const mark = chars.length > room && !hasEnded ? "…" : "";
      hasEnded ||= mark !== "";
      room -= Math.min(room, chars.length);
      return kept + mark;
    })
    .join("");
}

export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}
