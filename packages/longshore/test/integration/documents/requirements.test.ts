// Every requirement id in a test title has an explanation, and every explained requirement has a test.

import { expect, it } from "vitest";
import { explainedIn, proofs } from "../../support/requirements.ts";

/** One list for each protocol: its path, and the form of its ids. */
const lists = [
  { path: "packages/conformance/workflow-graph/README.md", id: /^(W-[A-Z]+-\d+|G\d+)$/ },
  { path: "packages/conformance/conductor/README.md", id: /^(C-[A-Z0-9]+-\d+|C\d+)$/ },
];

const named = new Set(proofs().map(({ id }) => id));

it.each(lists)("every id in a title that belongs to $path is explained there, once", ({ path, id }) => {
  const explained = explainedIn(path);
  expect(explained.length).toBeGreaterThan(0);
  expect(explained).toEqual([...new Set(explained)]);
  expect([...named].filter((found) => id.test(found) && !explained.includes(found))).toEqual([]);
});

it.each(lists)("every id in $path is named by a test", ({ path }) => {
  expect(explainedIn(path).filter((id) => !named.has(id))).toEqual([]);
});
