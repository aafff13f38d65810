// What the pages compute without a browser: layouts, queries, colours of logs, numbers.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exactJson } from "../src/core/exact-json.ts";
import { parameters, parseQuery, queryText, scans } from "../src/core/run-query.ts";
import { layOut } from "../src/graph/layout.ts";
import { withoutShortcuts } from "../src/graph/shortcuts.ts";
import { parseAnsi } from "../src/run/ansi.ts";

const graphs = fc.integer({ min: 1, max: 60 }).chain((count) =>
  fc.record({
    count: fc.constant(count),
    edges: fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), { maxLength: 150 }),
  }),
);

describe("the layout of a graph", () => {
  it("gives every node a place, and no two nodes overlap", () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const { layer, place } = layOut(graph);
        const rows = new Map<number, number[]>();
        layer.forEach((at, node) => {
          rows.set(at, [...(rows.get(at) ?? []), place[node] as number]);
        });
        for (const row of rows.values()) {
          row.sort((one, other) => one - other);
          row.forEach((at, index) => {
            if (index > 0) expect(at - (row[index - 1] as number)).toBeGreaterThan(0.999);
          });
        }
        expect(place.every(Number.isFinite)).toBe(true);
      }),
    );
  });

  it("has every edge lead to a later layer in a graph without cycles", () => {
    const forward = graphs.map(({ count, edges }) => ({ count, edges: edges.filter(([from, to]) => from < to) }));
    fc.assert(
      fc.property(forward, (graph) => {
        const { layer, bends } = layOut(graph);
        graph.edges.forEach(([from, to], at) => {
          expect(layer[to] as number).toBeGreaterThan(layer[from] as number);
          expect((bends[at] ?? []).map(([one]) => one)).toEqual(
            Array.from(
              { length: (layer[to] as number) - (layer[from] as number) - 1 },
              (_none, index) => (layer[from] as number) + index + 1,
            ),
          );
        });
      }),
    );
  });

  it("draws a graph of 2,000 nodes without one edge through a node's place", () => {
    const edges = Array.from({ length: 1_999 }, (_none, at): [number, number] => [Math.floor(at / 3), at + 1]);
    const { layers, from, to } = layOut({ count: 2_000, edges });
    expect(layers).toBe(8);
    expect(to - from).toBeLessThan(2_000);
  });
});

it("an edge is left out only when a longer path has the same meaning", () => {
  expect(
    withoutShortcuts(3, [
      [0, 1],
      [1, 2],
      [0, 2],
    ]),
  ).toEqual([0, 1]);
  expect(
    withoutShortcuts(3, [
      [0, 1],
      [0, 2],
    ]),
  ).toEqual([0, 1]);
});

describe("a query of runs", () => {
  it("is parsed into keys, values in quotes, and free text", () => {
    expect(parseQuery('state:failed error:"no route to" input.a.b:1 hello "two words" http://x')).toEqual([
      { key: "state", value: "failed" },
      { key: "error", value: "no route to" },
      { key: "input.a.b", value: "1" },
      { key: "", value: "hello" },
      { key: "", value: "two words" },
      { key: "", value: "http://x" },
    ]);
  });

  it("is the same after it was written and read again", () => {
    const text = fc.string({ maxLength: 12 }).map((given) => given.replace(/["\s:]/g, "").trim());
    const term = fc.record({ key: fc.constantFrom("", "state", "error", "input.x"), value: text.filter((value) => value !== "") });
    fc.assert(
      fc.property(fc.array(term, { maxLength: 6 }), (terms) => {
        expect(parseQuery(queryText(terms))).toEqual(terms);
      }),
    );
  });

  it("becomes parameters of the API, with times counted from now", () => {
    const given = parameters(parseQuery("after:2h longer:30s input.a:1 input.b:2 some text"), 10_000_000);
    expect([...given]).toEqual([
      ["view", "summary"],
      ["createdAfter", "2800000"],
      ["minMs", "30000"],
      ["where", "input.a:1"],
      ["where", "input.b:2"],
      ["text", "some text"],
    ]);
    expect(scans(parseQuery("state:failed workflow:a"))).toBe(false);
    expect(scans(parseQuery("state:failed text"))).toBe(true);
  });
});

describe("a line of a log", () => {
  it("has its colours, but no other control sequence of a terminal", () => {
    expect(parseAnsi("\u001b[1;31mred\u001b[0m and \u001b]0;title\u0007plain\u001b[2K\u0008")).toEqual([
      { text: "red", classes: "ansi-red ansi-bold" },
      { text: " and ", classes: "" },
      { text: "plain", classes: "" },
    ]);
  });

  it("shows control characters that would change the direction of the text", () => {
    expect(parseAnsi("a\u202Eb")).toEqual([{ text: "a⟨U+202E⟩b", classes: "" }]);
  });

  it("is read to its end, for any content", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("\u001b", "[", "]", "m", "1", ";", "\u0007", "x") }), (line) => void parseAnsi(line)),
    );
  });
});

it("a number that JavaScript cannot hold keeps its digits", () => {
  const value = exactJson('{"id": 12345678901234567890, "price": 19.5}') as { id: { text?: string }; price: number };
  expect(value.price).toBe(19.5);
  // Older versions of Node do not pass the source text of a number to the reviver.
  if (typeof value.id === "object") expect(value.id.text).toBe("12345678901234567890");
});
