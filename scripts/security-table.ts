// The table of SECURITY.md of what each token may do, made from the code. `npx tsx scripts/security-table.ts` writes it; a test fails when
// the file is not current.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Action, actions, callerWith, stranger } from "../packages/longshore/src/core/actions.ts";

const file = fileURLToPath(new URL("../SECURITY.md", import.meta.url));
const begin = "<!-- begin: actions -->";
const end = "<!-- end: actions -->";

const columns = [
  { title: "no token", caller: stranger },
  { title: "`read`", caller: callerWith("r", ["read"]) },
  { title: "`worker`", caller: callerWith("w", ["worker"]) },
  { title: "`operator`", caller: callerWith("o", ["operator"]) },
];

/** The rows as cells, the head first. */
export function actionRows(): string[][] {
  const head = ["action", "what it allows", ...columns.map(({ title }) => title)];
  const rows = (Object.keys(actions) as Action[]).map((action) => {
    const { what, bound } = actions[action];
    const allowed = columns.map(({ title, caller }) => {
      if (!caller.may(action)) return "";
      return bound && title === "`worker`" ? "for a task it holds" : "yes";
    });
    return [`\`${action}\``, what, ...allowed];
  });
  return [head, ...rows];
}

/** The document with the table of today in it. */
export function withTable(document: string): string {
  const [before, rest] = document.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`SECURITY.md lacks the comments ${begin} and ${end}.`);
  return `${before}${begin}\n\n${tableText(actionRows())}\n\n${end}${after}`;
}

function tableText(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_cell, at) => Math.max(...rows.map((row) => (row[at] ?? "").length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  const [head = [], ...body] = rows;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...body.map(line)].join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(file, withTable(readFileSync(file, "utf8")));
  console.log("SECURITY.md has the table of today.");
}
