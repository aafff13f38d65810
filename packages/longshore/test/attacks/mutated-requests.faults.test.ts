// The attacker hides a request inside another, where the fast path and Node's parser would differ about where it ends.

import { expect, it } from "vitest";
import { compareWithNode } from "../support/mutated-requests.ts";

const requests = 1_000_000;

it(`a million mutated requests mean the same to the fast path and to Node's parser, or are left to that`, async () => {
  expect(await compareWithNode(requests)).toBeGreaterThan(requests / 20);
});
