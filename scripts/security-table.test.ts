import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { actionRows, withTable } from "./security-table.ts";

const document = readFileSync(new URL("../SECURITY.md", import.meta.url), "utf8");

it("SECURITY.md has the same table of actions as the code; npx tsx scripts/security-table.ts writes it", () => {
  expect(withTable(document)).toBe(document);
});

it("the table allows an operator everything, and limits worker actions to their own tasks", () => {
  const [, ...rows] = actionRows();
  expect(rows.filter((row) => row[5] !== "yes")).toEqual([]);
  expect(rows.filter((row) => row[4] === "for a task it holds").map(([action]) => action)).toEqual([
    "`part.read`",
    "`sub-run.start`",
    "`sub-run.read`",
  ]);
});
