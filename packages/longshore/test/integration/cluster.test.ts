// Two servers on the same data in PostgreSQL, in one process: clients of either see one server.

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { task } from "../../src/core/task.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";
import { type Server, serve } from "../../src/server/index.ts";
import { work } from "../../src/work.ts";
import { type Ref, workflow } from "../../src/workflow.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";

const double = task("double", async ({ n }: { n: number }) => ({ n: n * 2 }));
const twice = workflow("twice", (w, input: Ref<{ n: number }>) => w.step(double, w.step(double, input)));

if (postgresMissing !== undefined) it("nodes on the same data serve the same runs", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("nodes on the same data", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    const open = async (store: string): Promise<Server> => {
      const server = await serve({ store, port: 0 });
      onTestFinished(() => server.close(0));
      return server;
    };

    it("run a workflow that one starts with a worker of the other", async () => {
      const store = postgres.newUrl();
      const first = await open(store);
      const second = await open(store);
      const worker = await work({ tasks: [double], on: workflowGraph(second.url as string) });
      onTestFinished(() => worker.stop());
      const { id } = await second.start(twice, { n: 5 });
      expect(await first.result(id)).toMatchObject({ state: "succeeded", output: { n: 20 } });
      expect(await second.result(id)).toMatchObject({ state: "succeeded", output: { n: 20 } });
    });

    it("go on when the owner stops, and its clients see no error", async () => {
      const store = postgres.newUrl();
      const first = await open(store);
      const second = await open(store);
      const worker = await work({ tasks: [double], on: workflowGraph(second.url as string) });
      onTestFinished(() => worker.stop());
      const { id } = await second.start(twice, { n: 1 });
      await second.result(id);
      const closed = first.close();
      const started = await Promise.all(Array.from({ length: 20 }, (_, n) => second.start(twice, { n })));
      await closed;
      for (const [n, run] of started.entries()) expect((await second.result(run.id)).output).toEqual({ n: n * 4 });
    });
  });
