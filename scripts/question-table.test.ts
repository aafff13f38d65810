import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findPathProblems, findQuestionProblems } from "./question-table.ts";

const head = "# A\n\n## Follow a question through the code\n\n| question | read |\n| --- | --- |\n";
let source: string;

beforeAll(() => {
  source = mkdtempSync(join(tmpdir(), "question-table-"));
  mkdirSync(join(source, "board"));
  writeFileSync(join(source, "board/board.ts"), "export class Board {\n  async claim(): Promise<void> {\n    this.take();\n  }\n}\n");
});

afterAll(() => rmSync(source, { recursive: true }));

describe("the table of questions", () => {
  it("names files and functions that exist in ARCHITECTURE.md", () => {
    const root = fileURLToPath(new URL("..", import.meta.url));
    const document = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
    expect(findQuestionProblems(document, join(root, "packages/longshore/src"))).toEqual([]);
  });

  it("accepts a file with a function that it declares", () => {
    expect(findQuestionProblems(`${head}| A worker claims. | \`board/board.ts\` (\`claim\`), \`board/\` |\n`, source)).toEqual([]);
  });

  it("reports a file that does not exist", () => {
    const problems = findQuestionProblems(`${head}| A worker claims. | \`board/lanes.ts\` |\n`, source);
    expect(problems).toEqual(["ARCHITECTURE.md: there is no board/lanes.ts"]);
  });

  it("reports a function that the file calls but does not declare", () => {
    const problems = findQuestionProblems(`${head}| A worker claims. | \`board/board.ts\` (\`claim\`, \`take\`) |\n`, source);
    expect(problems).toEqual(["ARCHITECTURE.md: board/board.ts has no function take"]);
  });

  it("reports that the table is missing", () => {
    expect(findQuestionProblems("# A\n", source)).toHaveLength(1);
  });

  it("ignores the sections after the table", () => {
    const document = `${head}| A worker claims. | \`board/board.ts\` |\n\n## Words\n\n| a | \`board/none.ts\` |\n`;
    expect(findQuestionProblems(document, source)).toEqual([]);
  });
});

describe("the files that the page names elsewhere", () => {
  it("may be in any of the folders", () => {
    expect(findPathProblems("See `board/board.ts` and `board/`.\n", ["/nowhere", source])).toEqual([]);
  });

  it("are reported once when no folder has them", () => {
    expect(findPathProblems("`board/lanes.ts`, then `board/lanes.ts` again.\n", [source])).toEqual([
      "ARCHITECTURE.md: there is no board/lanes.ts",
    ]);
  });
});
