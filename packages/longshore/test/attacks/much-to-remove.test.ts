// The attacker holds an operator or a worker token and leaves much data to remove: very many runs that end together, a run with very many
// rows, or few rows with very much text. Removing it must not delay other requests. No transaction of retention may remove more rows or
// bytes than a slice. The full size is in much-to-remove.faults.test.ts.

import { it } from "vitest";
import { removeMuch } from "./much-to-remove.ts";

it("no transaction of retention removes more rows or bytes than a slice has", async () => {
  await removeMuch({ runs: 2_000, rows: 2_000 });
});
