// The client at a node of a cluster that does not own the data: all its requests and responses pass over the link to the owner.

import { afterAll, beforeAll, describe, it } from "vitest";
import { connectBy } from "../../src/client/connect.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";
import { serve } from "../../src/server/server.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import type { OpenClient } from "./client-fixtures.ts";
import { clientContract } from "./client-suite.ts";

if (postgresMissing !== undefined) it("a node is no different for a client", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("with a cluster", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    clientContract("through a node that does not own the data", async (): Promise<OpenClient> => {
      const clock = new TestClock();
      const options = { store: postgres.newUrl(), port: 0, clock, logger: { level: "silent" } } as const;
      const owner = await serve(options);
      const node = await serve(options);
      const url = node.url as string;
      const close = async () => {
        await node.close();
        await owner.close();
      };
      return { client: connectBy(url, {}, clock), on: { transport: () => workflowGraph(url) }, clock, close };
    });
  });
