import { afterAll, beforeAll, describe, it } from "vitest";
import { postgresMissing, TestPostgres } from "../support/postgres.ts";
import { postgresSchemas } from "./postgres.ts";
import { storeContract } from "./store.ts";

if (postgresMissing !== undefined)
  it("the store on PostgreSQL does what stores must do", (context) => context.skip(`needs ${postgresMissing}`));
else {
  describe("with a server", () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await TestPostgres.start();
    });
    afterAll(() => server.remove());

    storeContract(
      "PostgreSQL",
      postgresSchemas(() => server),
    );
  });
}
