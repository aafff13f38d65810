// Reads a Markdown document as the list of things to do with it. CONTRIBUTING.md describes the directives for authors.

export interface Block {
  kind: "block";
  line: number;
  language: string;
  text: string;
  /** Save under this name for the following blocks, do not run. */
  file?: string;
  /** Start and leave running until the document ends; ready once its output contains this text. */
  background?: string;
  /** Texts that the output must contain. */
  expect: string[];
  /** This block shows what the previous one printed. */
  output: boolean;
  /** Why this block is not executed. */
  illustrative?: string;
  /** Run in the repository's own folder, not in the document's. */
  inRepository: boolean;
}

export type Action = Block | { kind: "server"; line: number; args: string } | { kind: "setup"; line: number; command: string };

export class DocumentError extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.name = "DocumentError";
    this.line = line;
  }
}

type Directives = Pick<Block, "file" | "background" | "expect" | "output" | "illustrative" | "inRepository">;

const DIRECTIVE = /^\s*<!--\s*(file|background|expect|output|illustrative|repository|server|setup)(?::\s*(.*?))?\s*-->\s*$/;
const FENCE = /^(\s*)(`{3,}|~{3,})\s*([\w+-]*)\s*$/;

export function parseDocument(source: string): Action[] {
  const actions: Action[] = [];
  const lines = source.split("\n");
  let pending = noDirectives();
  let pendingLine = 0;
  for (let index = 0; index < lines.length; index += 1) {
    const text = lines[index] as string;
    const line = index + 1;
    const directive = DIRECTIVE.exec(text);
    if (directive !== null) {
      const [, name, value = ""] = directive as unknown as [string, string, string | undefined];
      if (name === "server") actions.push({ kind: "server", line, args: value });
      else if (name === "setup") actions.push({ kind: "setup", line, command: required(line, name, value) });
      else {
        addDirective(pending, line, name, value);
        pendingLine = line;
      }
      continue;
    }
    const fence = FENCE.exec(text);
    if (fence !== null) {
      const end = findFenceEnd(lines, index, fence[2] as string);
      const body = lines.slice(index + 1, end).map((one) => removeIndent(one, fence[1] as string));
      actions.push({ kind: "block", line, language: fence[3] as string, text: `${body.join("\n")}\n`, ...pending });
      pending = noDirectives();
      pendingLine = 0;
      index = end;
    } else if (text.trim() !== "" && pendingLine > 0) {
      throw new DocumentError(pendingLine, "this directive is not followed by a code block");
    }
  }
  if (pendingLine > 0) throw new DocumentError(pendingLine, "this directive is not followed by a code block");
  return actions;
}

function noDirectives(): Directives {
  return { expect: [], output: false, inRepository: false };
}

function addDirective(directives: Directives, line: number, name: string, value: string): void {
  if (name === "output") directives.output = true;
  else if (name === "repository") directives.inRepository = true;
  else if (name === "expect") directives.expect.push(required(line, name, value));
  else if (name === "file") directives.file = required(line, name, value);
  else if (name === "background") directives.background = required(line, name, value);
  else directives.illustrative = required(line, name, value);
}

function required(line: number, name: string, value: string): string {
  if (value === "") throw new DocumentError(line, `"${name}" needs a text after the colon`);
  return value;
}

function findFenceEnd(lines: readonly string[], start: number, fence: string): number {
  for (let index = start + 1; index < lines.length; index += 1) {
    const text = (lines[index] as string).trim();
    if (text.startsWith(fence) && text === (fence[0] as string).repeat(text.length)) return index;
  }
  throw new DocumentError(start + 1, "this code block is never closed");
}

function removeIndent(text: string, indent: string): string {
  return text.startsWith(indent) ? text.slice(indent.length) : text.trimStart();
}
