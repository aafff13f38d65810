import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { actionRows, withTable } from "./security-table.ts";

const document = readFileSync(new URL("../SECURITY.md", import.meta.url), "utf8");

it("SECURITY.md has the table of actions as the code has it; npx tsx scripts/security-table.ts writes it", () => {
  expect(withTable(document)).toBe(document);
});

it("the table allows an operator everything, and binds what workers do for their tasks", () => {
  const [, ...rows] = actionRows();
  expect(rows.filter((row) => row[5] !== "yes")).toEqual([]);
  expect(rows.filter((row) => row[4] === "for a task it holds").map(([action]) => action)).toEqual([
    "`part.read`",
    "`sub-run.start`",
    "`sub-run.read`",
  ]);
});
