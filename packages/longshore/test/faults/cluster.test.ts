// A cluster of real processes that are killed, frozen and restarted under load. No acknowledged data is lost, nothing counts twice, and
// clients of running nodes get no error. `npm run faults` runs the long form.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { NodeProcess } from "../support/cluster.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { untilElsewhere } from "../support/until.ts";
import { claimJob } from "./api.ts";
import { inCluster, type Judged, outageMs, tickNow } from "./cluster-load.ts";
import { type Link, openLink } from "./link.ts";
import { independent } from "./shapes.ts";

/** Short, so that a hanging node is soon replaced. */
const lease = ["--lease", "1s"];

function print(what: string, { runs, completions, answers }: Judged, outage: number): void {
  process.stdout.write(
    `faults: ${what}: ${runs} runs and ${completions} completions acknowledged, ${answers} answers, 0 lost, 0 twice, longest wait ${outage} ms\n`,
  );
}

if (postgresMissing !== undefined) it("a cluster survives the end of its owner", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("a cluster under load", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    it("loses nothing when its owner is killed, and clients of the other node get no error", async () => {
      await inCluster({ postgres, nodes: 2, flags: lease }, async ({ cluster, load }) => {
        const owner = await cluster.owner();
        const [other] = await cluster.members();
        if (other === undefined) throw new Error("there is no other node");
        const work = load({ through: () => [other] });
        await work.begin();
        await work.more();
        const killedAt = tickNow();
        await owner.kill();
        expect(await cluster.owner()).toBe(other);
        await work.more();
        await owner.start();
        await work.more();
        const judged = await work.judge();
        print("kill -9 of the owner", judged, outageMs(judged.history, killedAt));
        expect(work.troubles).toEqual([]);
      });
    });

    it("loses nothing when the nodes are restarted one after the other, and no client gets an error", async () => {
      await inCluster({ postgres, nodes: 3, flags: lease }, async ({ cluster, load }) => {
        const work = load();
        await work.begin();
        const endedAt: number[] = [];
        for (const node of cluster.nodes) {
          await work.more();
          endedAt.push(tickNow());
          await node.end();
          await work.more();
          await node.start();
        }
        const judged = await work.judge();
        const longest = Math.max(...endedAt.map((tick) => outageMs(judged.history, tick)));
        print("restart of three nodes", judged, longest);
        expect(work.troubles).toEqual([]);
      });
    });

    it("replaces a hanging owner, whose later commits and responses do not count and which becomes a member again", async () => {
      await inCluster({ postgres, nodes: 2, flags: lease }, async ({ cluster, load }) => {
        const owner = await cluster.owner();
        const [other] = await cluster.members();
        if (other === undefined) throw new Error("there is no other node");
        const work = load();
        await work.begin();
        await work.more();
        const frozenAt = tickNow();
        owner.pause();
        expect(await cluster.owner()).toBe(other);
        await work.more();
        owner.resume();
        await untilElsewhere(async () => (await owner.state()) === "member");
        await work.more();
        const judged = await work.judge();
        print("SIGSTOP of the owner", judged, outageMs(judged.history, frozenAt));
        expect(work.troubles).toEqual([]);
        expect(await cluster.owner()).toBe(other);
      });
    });

    it("creates one run for a start without a key whose owner dies between its commit and its response", async () => {
      const links: Link[] = [];
      const own = async (index: number, port: number) => {
        if (index > 0) return {};
        const link = await openLink(port);
        links.push(link);
        return { flags: ["--advertise", link.url] };
      };
      await inCluster({ postgres, nodes: 2, flags: lease, own }, async ({ cluster, load }) => {
        const [owner, other] = cluster.nodes as [NodeProcess, NodeProcess];
        const { client, troubles } = load({ through: () => [other] });
        const workflow = await client.create("one", independent(1));
        const before = await client.startOnce(workflow);
        links[0]?.hush();
        const starting = client.startOnce(workflow);
        const schema = new URL(cluster.store).searchParams.get("schema");
        const stored = () => postgres.query(`SELECT id FROM ${schema}.run WHERE id <> '${before}'`);
        const [run] = await untilElsewhere(async () => ((await stored()).length > 0 ? stored() : false));
        await owner.kill();
        links[0]?.cut();
        expect(await starting).toBe(run?.id);
        expect(await cluster.owner()).toBe(other);
        expect(await stored()).toEqual([run]);
        expect(troubles).toEqual([]);
        await links[0]?.close();
      });
    });

    it("ends at once when all its nodes are stopped, and long polls get a response", async () => {
      await inCluster({ postgres, nodes: 2 }, async ({ cluster, load }) => {
        const [owner, other] = cluster.nodes as [NodeProcess, NodeProcess];
        const { client, troubles } = load({ through: () => [other] });
        await client.create("one", independent(1));
        const performed = async () =>
          /^longshore_link_performed_total (\d+)/m.exec(await (await fetch(`${owner.url}/metrics`)).text())?.[1];
        const before = await performed();
        const poll = claimJob(client.connection, { workerId: "idle", ttlSecs: 5, waitSecs: 20 });
        // The claim has reached the owner.
        await untilElsewhere(async () => (await performed()) !== before);
        await Promise.all([owner.end(), other.end()]);
        expect(await poll).toBeNull();
        expect(troubles).toEqual([]);
      });
    });

    it("resumes automatically when PostgreSQL was stopped immediately and started again", async () => {
      const own = await TestPostgres.start({ durable: true });
      try {
        await inCluster({ postgres: own, nodes: 2, flags: lease }, async ({ cluster, load }) => {
          const work = load({ mayRefuse: true });
          await work.begin();
          await work.more();
          const endedAt = tickNow();
          await own.down("SIGQUIT");
          await own.up();
          await cluster.owner();
          await work.more(100);
          const judged = await work.judge();
          print("immediate end of PostgreSQL", judged, outageMs(judged.history, endedAt));
          expect(work.troubles).toEqual([]);
        });
      } finally {
        await own.remove();
      }
    });
  });
