import { afterAll, beforeAll, describe, it } from "vitest";
import { openDatabase } from "../../src/store/postgres/database.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { copySchema } from "./postgres.ts";
import { type OpenedRows, rowsContract } from "./rows.ts";

if (postgresMissing !== undefined) it("the rows of PostgreSQL do what rows must do", (context) => context.skip(`needs ${postgresMissing}`));
else {
  describe("with a server", () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => server.remove(), startMsMax);

    async function open(url: string): Promise<OpenedRows> {
      const { rows, close } = await openDatabase({ url, node: "test" });
      // The rows as they are now, without the changes of closing.
      return { rows, close, crash: async () => open(await copySchema(server, url)) };
    }

    rowsContract("rows of PostgreSQL", () => open(server.newUrl()));
  });
}
