// The transition table is data in engine/board/task.ts. Two documents show it, and one of them also has a diagram.

import { describe, expect, it } from "vitest";
import { type Cell, table, type Verb } from "../../../src/engine/board/task.ts";
import { readDocument, type Section, section } from "../../support/markdown.ts";

const verbs: readonly Verb[] = ["claim", "offer", "extend", "complete", "fail", "defer", "cancel", "expire"];

const documents = [
  { path: "docs/concepts/board.md", title: "The transition table" },
  { path: "ARCHITECTURE.md", title: "The board" },
];

describe("the transition table", () => {
  it.each(documents)("in $path is that of the code", ({ path, title }) => {
    expect(shownIn(section(readDocument(path), title))).toEqual(Object.fromEntries(Object.entries(table).map(rowOf)));
  });

  it("is the same as the diagram in docs/concepts/board.md", () => {
    const drawn = arrowsOf(section(readDocument("docs/concepts/board.md"), "Picture").text);
    const expected = Object.entries(table).flatMap(([from, row]) =>
      from === "ended" ? [] : verbs.flatMap((verb) => (row[verb] === null ? [] : [arrow(from, verb, row[verb])])),
    );
    expect(drawn.sort()).toEqual(expected.sort());
  });
});

function rowOf([state, row]: [string, Readonly<Record<Verb, Cell | null>>]): [string, string[]] {
  return [state, verbs.map((verb) => (row[verb] === null ? "-" : written(row[verb])))];
}

function written({ to, verdict }: Cell): string {
  return verdict === "ok" ? to : `${to}, \`${verdict}\``;
}

/** Cells by state. A row belongs to the table when its first cell is a state of the code. */
function shownIn({ rows }: Section): Record<string, readonly string[]> {
  return Object.fromEntries(rows.filter(([state = ""]) => state in table).map(([state = "", ...cells]) => [state, cells]));
}

function arrow(from: string, verb: Verb, { to }: Cell): string {
  return `${from} ${verb} ${to === "same" ? from : to}`;
}

/** `queued --> close: fail, expire` is two arrows. The table does not contain decisions of a policy and the creation of tasks. */
function arrowsOf(text: string): string[] {
  return [...text.matchAll(/^ *(\w+) --> (\w+): (.+)$/gm)]
    .filter(([, from]) => from !== "close")
    .flatMap(([, from, to, names = ""]) => names.split(", ").map((verb) => `${from} ${verb} ${to}`));
}
