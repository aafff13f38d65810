// The table "Follow a question through the code" of ARCHITECTURE.md names files and functions. They must exist: `npm run check` reports
// each one that does not.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const HEADING = "## Follow a question through the code";

/** Returns one sentence for each file or function of the table that does not exist. `sourceRoot` is a `src` folder. */
export function findQuestionProblems(document: string, sourceRoot: string): string[] {
  const section = document.split(HEADING)[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  // The first two lines are the head of the table.
  const answers = rows.slice(2).map((row) => row.split("|")[2] ?? "");
  if (answers.length === 0) return [`ARCHITECTURE.md: the table below "${HEADING}" is missing`];
  return answers.flatMap((answer) => problemsOf(answer, sourceRoot));
}

/** Returns one sentence for each file of the whole page that is in none of the folders. */
export function findPathProblems(document: string, folders: readonly string[]): string[] {
  const paths = new Set([...document.matchAll(/`([\w.-]+\/[\w./-]*\.(?:ts|tsx|mjs))`/g)].map(([, path]) => path as string));
  const missing = [...paths].filter((path) => !folders.some((folder) => existsSync(join(folder, path))));
  return missing.map((path) => `ARCHITECTURE.md: there is no ${path}`);
}

function problemsOf(answer: string, sourceRoot: string): string[] {
  const problems: string[] = [];
  for (const [, path = "", names = ""] of answer.matchAll(/`([\w.-]+\/[\w./-]*)`(?: \((`[^)]+)\))?/g)) {
    const file = join(sourceRoot, path);
    if (!existsSync(file)) {
      problems.push(`ARCHITECTURE.md: there is no ${path}`);
      continue;
    }
    const functions = [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string);
    const missing = functions.filter((name) => !declares(readFileSync(file, "utf8"), name));
    problems.push(...missing.map((name) => `ARCHITECTURE.md: ${path} has no function ${name}`));
  }
  return problems;
}

/** Whether a line declares a function, a method or a class of this name. A call is indented and ends with a semicolon. */
function declares(text: string, name: string): boolean {
  const modifiers = "(?:export |async |static |readonly |override |\\*)*";
  const keywords = "(?:function\\*? |class |interface |const )?";
  return new RegExp(`^ {0,2}${modifiers}${keywords}${name}\\b(?![^\\n]*\\);$)`, "m").test(text);
}
