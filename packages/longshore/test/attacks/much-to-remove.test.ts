// The attacker holds an operator or a worker token and leaves much behind: very many runs that end together, a run with very many rows, few
// rows with very much text. Removing it must not hold up the others: no transaction of retention removes more than a slice, in rows and in
// bytes. The full size is in much-to-remove.faults.test.ts.

import { it } from "vitest";
import { removeMuch } from "./much-to-remove.ts";

it("no transaction of retention removes more rows or bytes than a slice has", async () => {
  await removeMuch({ runs: 2_000, rows: 2_000 });
});
