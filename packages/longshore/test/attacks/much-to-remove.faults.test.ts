// The full size of much-to-remove.test.ts.

import { it } from "vitest";
import { removeMuch } from "./much-to-remove.ts";

it("200,000 runs and a run with 100,000 rows of each kind are removed in slices", { timeout: 900_000 }, async () => {
  await removeMuch({ runs: 200_000, rows: 100_000 });
});
