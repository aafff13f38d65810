// Two servers on the same data in PostgreSQL, in one process: clients of both see one server.

import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";
import type { Ref } from "../../src/reference.ts";
import type { Server } from "../../src/server/index.ts";
import { work } from "../../src/work.ts";
import { postgresMissing } from "../support/postgres.ts";
import { sharedPostgres } from "../support/postgres-servers.ts";
import { untilElsewhere } from "../support/until.ts";

const docs = new URL("../../../../docs/", import.meta.url);
const double = task("double", async ({ n }: { n: number }) => ({ n: n * 2 }));
const twice = graph("twice", (g, input: Ref<{ n: number }>) => g.step(double, g.step(double, input)));

if (postgresMissing !== undefined) it("nodes on the same data serve the same runs", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("nodes on the same data", () => {
    const { postgres, open } = sharedPostgres();

    it("run a workflow that a client of one node starts with a worker of the other node", async () => {
      const store = postgres().newUrl();
      const first = await open(store);
      const second = await open(store);
      const worker = await work({ tasks: [double], on: workflowGraph(second.url as string) });
      onTestFinished(() => worker.stop());
      const { id } = await second.start(twice, { n: 5 });
      expect(await first.result(id)).toMatchObject({ state: "succeeded", output: { n: 20 } });
      expect(await second.result(id)).toMatchObject({ state: "succeeded", output: { n: 20 } });
    });

    it("show in their metrics the lease, the link, misses and the operations of each commit", async () => {
      const store = postgres().newUrl();
      const owner = await open(store);
      const other = await open(store);
      const figures = async ({ url }: Server) => {
        const text = await (await fetch(`${url}/metrics`)).text();
        const families = [...text.matchAll(/^# TYPE (\S+) \S+$/gm)].map(([, name]) => name as string);
        const values = new Map([...text.matchAll(/^([^#\s]+) (\S+)$/gm)].map(([, name, value]) => [name as string, Number(value)]));
        return { families, of: (name: string) => values.get(name) ?? Number.NaN };
      };
      const before = { owner: await figures(owner), other: await figures(other) };
      const worker = await work({ tasks: [double], on: workflowGraph(other.url as string) });
      onTestFinished(() => worker.stop());
      const started = await Promise.all(Array.from({ length: 20 }, (_, n) => other.start(twice, { n })));
      for (const { id } of started) await other.result(id);
      const after = { owner: await figures(owner), other: await figures(other) };
      const grown = (who: "owner" | "other", name: string) => after[who].of(name) - before[who].of(name);
      for (const by of ["operations", "reads"]) {
        expect(grown("owner", `longshore_store_misses_total{by="${by}"}`)).toBeGreaterThan(0);
        expect(grown("owner", `longshore_store_loads_total{by="${by}"}`)).toBeGreaterThan(0);
      }
      expect(grown("owner", "longshore_commit_operations_total")).toBeGreaterThan(grown("owner", "longshore_commits_total"));
      expect(["longshore_lease_seconds", "longshore_node_epoch", "longshore_link_up"].map(after.other.of)).toEqual([0, 1, 1]);
      expect(after.owner.of("longshore_lease_seconds")).toBeGreaterThan(0);
      expect(["longshore_node_epoch", "longshore_link_up", "longshore_link_nodes"].map(after.owner.of)).toEqual([1, 0, 1]);
      for (const name of ["calls_total", 'bytes_total{direction="in"}', 'bytes_total{direction="out"}'])
        expect(grown("other", `longshore_link_${name}`)).toBeGreaterThan(0);
      expect(grown("owner", "longshore_link_performed_total")).toBeGreaterThan(0);
      const documents = ["guides/cluster.md", "reference/http-api.md"].map((name) => readFileSync(new URL(name, docs), "utf8")).join("");
      for (const { families } of Object.values(after))
        expect(families.filter((name) => !documents.includes(`\`${name}\``) && !documents.includes(`\`${name}{`))).toEqual([]);
      await owner.close();
      await untilElsewhere(async () => (await figures(other)).of("longshore_node_epoch") === 2);
      expect((await figures(other)).of("longshore_lease_seconds")).toBeGreaterThan(0);
    });

    it("end their long polls with a response when they close, also those that wait at the owner", async () => {
      const store = postgres().newUrl();
      const owner = await open(store);
      const other = await open(store);
      const performed = async () => /^longshore_link_performed_total (\d+)/m.exec(await (await fetch(`${owner.url}/metrics`)).text())?.[1];
      const before = await performed();
      // Its wait is longer than the time that a closing listener waits.
      const body = JSON.stringify({ worker_id: "w", labels: [], lease_ttl_secs: 60, wait_secs: 30 });
      const claim = fetch(`${other.url}/api/jobs/claim`, { method: "POST", headers: { "content-type": "application/json" }, body });
      const answer = claim.then((reply) => reply.text(), String);
      await untilElsewhere(async () => (await performed()) !== before);
      await other.close();
      expect(await answer).toBe("null");
    });

    it("continue when the owner stops, and its clients get no error", async () => {
      const store = postgres().newUrl();
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
