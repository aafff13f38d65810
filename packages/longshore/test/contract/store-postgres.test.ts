import { afterAll, beforeAll, describe, it } from "vitest";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { postgresSchemas } from "./postgres.ts";
import { storeContract } from "./store.ts";

if (postgresMissing !== undefined)
  it("the PostgreSQL store fulfils the contract of stores", (context) => context.skip(`needs ${postgresMissing}`));
else {
  describe("with a server", () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => server.remove(), startMsMax);

    storeContract(
      "PostgreSQL",
      postgresSchemas(() => server),
    );
  });
}
