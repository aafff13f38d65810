// The attacker hides a request inside another request, in case the fast path and Node's parser find different ends of a request.

import { expect, it } from "vitest";
import { compareWithNode } from "../support/mutated-requests.ts";

const requests = 1_000_000;

it(`a million mutated requests have the same meaning for the fast path and Node's parser, or are left to Node's parser`, async () => {
  expect(await compareWithNode(requests)).toBeGreaterThan(requests / 20);
});
