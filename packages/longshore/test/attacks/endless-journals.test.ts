// The attacker is the server of a worker, or is between both. The worker must replay a durable function and reads pages of its journal. A
// page names itself as the next one, or there is always one more, or the response is not a page. The worker once continued to read until its
// memory was full.

import { expect, it } from "vitest";
import type { Json } from "../../src/core/json/json.ts";
import { readJournal } from "../../src/runner/function/read-journal.ts";

const entry = (node: number, output: Json = null) => ({
  node,
  command: "local s",
  result: { node, place: node, state: "done", at: 0, output },
});

/** Reads a journal from a server that answers with these pages; returns the error and the number of pages that were read. */
async function refusal(page: (after: number) => Json): Promise<[string, number]> {
  let pages = 0;
  const ask = (_question: string, after?: Json) => {
    if (++pages > 30_000) throw new Error("The worker reads without an end.");
    return Promise.resolve(page(after as number));
  };
  const error = await readJournal({ ask }, { chars: 5_000_000, values: 1_000_000 }).catch((thrown: Error) => thrown);
  return [error instanceof Error ? error.message : "none", pages];
}

it.each([
  ["a page that leads to itself", () => ({ entries: [], next: 0 }), "followed by the page after command 0", 1],
  [
    "a page that leads back",
    (after: number) => ({ entries: [], next: after === 0 ? 5 : 4 }),
    "the page after command 5 is followed by the page after command",
    2,
  ],
  ["a next page that is not a number", () => ({ entries: [], next: "1" }), "the page after command 0 is followed by", 1],
  ["more commands than a run may have", () => ({ entries: Array.from({ length: 20_001 }, () => entry(1)) }), "more than 20000 commands", 1],
  ["commands beyond all numbers", () => ({ entries: [entry(1), entry(1e9)] }), "number 2 after command 0", 1],
  ["entries that are none", () => ({ entries: [5] }), "number 1 after command 0", 1],
  ["a result without a place", () => ({ entries: [{ node: 1, command: "local s", result: {} }] }), "number 1 after command 0", 1],
  ["no list", () => ({ entries: { length: 5 } }), "not an object with a list", 1],
  ["no page", () => "ok", "not an object with a list", 1],
] as const)("%s ends the replay", async (_what, page, message, pages) => {
  const [error, read] = await refusal(page as (after: number) => Json);
  expect([error.includes(message) ? message : error, read]).toEqual([message, pages]);
});

it("pages without an end are read up to the size of a journal", async () => {
  const [small, pages] = await refusal((after) => ({ entries: [], next: after + 1 }));
  expect([small, pages]).toEqual([expect.stringContaining("the page after command 20000 is followed by"), 20_001]);
  const [large, few] = await refusal((after) => ({ entries: [entry(after + 1, "x".repeat(100_000))], next: after + 1 }));
  expect([large, few]).toEqual([expect.stringContaining("larger than 5000000 characters"), 50]);
});
