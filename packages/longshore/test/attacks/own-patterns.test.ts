// Our regular expressions read every text of a request, a definition or a worker. With an expression that needs more than linear time, a
// single request could block the event loop. So this test checks each literal of the source, and counts expressions that are built from
// texts.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript-6";
import { describe, expect, it } from "vitest";
import { findSlowness } from "../support/pattern-cost.ts";

const source = fileURLToPath(new URL("../../src", import.meta.url));

/** The places where expressions are built from texts, and why an attacker cannot choose these texts. */
const madeHere = new Map([
  ["cli/find-files.ts", "a pattern that the caller of the command wrote, on names of their own files"],
  ["cli/terminal.ts", "a constant that would hold a control character as a literal"],
  ["core/pattern/pattern-parser.ts", "a property of characters, asked for one character at a time"],
  ["protocols/conductor/dialect/credentials.ts", "a choice of constant names"],
  ["protocols/flowkit/server/batch-head.ts", "a constant in parts, on at most a kilobyte"],
]);

interface Literal {
  readonly where: string;
  readonly source: string;
  readonly flags: string;
}

function expressionsIn(file: string): { literals: Literal[]; made: number } {
  const parsed = ts.createSourceFile(file, readFileSync(join(source, file), "utf8"), ts.ScriptTarget.Latest, true);
  const literals: Literal[] = [];
  let made = 0;
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf("/");
      const line = parsed.getLineAndCharacterOfPosition(node.getStart()).line + 1;
      literals.push({ where: `${file}:${line}`, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
    }
    if ((ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === "RegExp") made++;
    ts.forEachChild(node, visit);
  };
  visit(parsed);
  return { literals, made };
}

const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
);
const found = files.map((file) => ({ file, ...expressionsIn(file) }));

describe("a regular expression of ours", () => {
  it("needs linear time for any text", () => {
    const literals = found.flatMap((each) => each.literals);
    // Each expression is checked once. One with lookaround or backreferences cannot be checked, and also counts as a fault: write a few lines
    // of code instead.
    const faults = literals.flatMap(({ where, source, flags }) => {
      try {
        const slow = findSlowness(source, flags);
        return slow === null
          ? []
          : [`${where}: /${source}/${flags} takes ${slow.steps.join(", then ")} steps: ${JSON.stringify(slow.attack)}`];
      } catch (error) {
        return [`${where}: ${(error as Error).message}`];
      }
    });
    expect(faults).toEqual([]);
    expect(literals.length).toBeGreaterThan(200);
  });

  it("is built only from texts that no attacker can choose", () => {
    expect(found.flatMap(({ file, made }) => (made > 0 ? [file] : [])).sort()).toEqual([...madeHere.keys()].sort());
  });
});

describe("the check", () => {
  const duration =
    "^\\s*(?:(\\d{1,10})\\s*(?:days?|d))?\\s*(?:(\\d{1,10})\\s*(?:hours?|hrs?|h))?\\s*(?:(\\d{1,10})\\s*(?:minutes?|mins?|m))?\\s*$";

  it.each([
    ["^(a+)+$", ""],
    ["^(a|a)*$", ""],
    ["^(a|aa)+$", ""],
    ["^(\\w+\\s?)*$", ""],
    ["\\s+$", ""],
    ["\\/+$", ""],
    ["^\\s*\\s*x", ""],
    ["a.*b.*c", "s"],
    ["\\$\\{([^}]*)\\}", "g"],
    ["^(.*),(.*),(.*)$", ""],
    [duration, "i"],
  ])("finds /%s/%s slow, with a text that shows it", (pattern, flags) => {
    const slow = findSlowness(pattern, flags);
    expect(slow?.steps[1]).toBeGreaterThan(5_000);
  });

  it.each([
    ["^[\\w./:-]+$", ""],
    ["^a+b+c*$", ""],
    ["^(?:[^/]+/)*[^/]+$", ""],
    ["\\s+", "y"],
    ["[0-9]+", "g"],
    ["^(\\d{4})-(\\d{1,2})-(\\d{1,2})(?: +(\\d{1,2}):(\\d{1,2}))?$", ""],
    ["\\sAND\\s", "gi"],
  ])("has nothing against /%s/%s", (pattern, flags) => {
    expect(findSlowness(pattern, flags)).toBeNull();
  });
});
