// A cluster whose network, database and clocks fail: it keeps all acknowledged data, and serves again automatically.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { NodeProcess } from "../support/cluster.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { openProxy, type PostgresProxy } from "../support/postgres-proxy.ts";
import { inCluster, type Judged, type Load, outageMs, tickNow } from "./cluster-load.ts";
import { type Link, openLink } from "./link.ts";
import { until } from "./until.ts";

const lease = ["--lease", "1s"];
/** How long PostgreSQL is unavailable or a network is silent: several leases, and longer than a node waits for its owner. */
const AWAY_MS = 20_000;
const SILENT_MS = 4_000;
const BACK_MS_MAX = 90_000;
const CLOCKS_APART_MS = 600_000;

function print(what: string, load: Load, { runs, completions, answers, history }: Judged, since: number): void {
  const waited = `longest wait ${outageMs(history, since)} ms`;
  process.stdout.write(
    `faults: ${what}: ${runs} runs and ${completions} completions acknowledged, ${answers} answers, 0 lost, 0 twice, ${load.troubles.length} errors at clients, ${waited}\n`,
  );
}

/** The wall clock of this process is ahead, as with libfaketime. */
function ahead(ms: number): string {
  const program = `const D=Date;globalThis.Date=class extends D{constructor(...a){a.length?super(...a):super(D.now()+${ms})}static now(){return D.now()+${ms}}}`;
  return `--import=data:text/javascript,${encodeURIComponent(program)}`;
}

if (postgresMissing !== undefined) it("a cluster survives its network", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("a cluster", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    /** It serves again: requests get responses. */
    const back = async (work: Load) => {
      const before = work.answers;
      await until("answers", BACK_MS_MAX, () => work.answers > before + 50);
    };

    it("serves again automatically after PostgreSQL was unavailable for 20 s", async () => {
      const own = await TestPostgres.start({ durable: true });
      try {
        await inCluster({ postgres: own, nodes: 2, flags: lease }, async ({ load }) => {
          const work = load({ mayRefuse: true });
          await work.begin();
          await work.more();
          const at = tickNow();
          await own.down("SIGQUIT");
          await later(AWAY_MS);
          await own.up();
          await back(work);
          print("PostgreSQL away for 20 s", work, await work.judge(), at);
        });
      } finally {
        await own.remove();
      }
    });

    it("handles broken and silent links between nodes, without an error at clients", async () => {
      const links: Link[] = [];
      const own = async (_: number, port: number) => {
        const link = await openLink(port);
        links.push(link);
        return { flags: ["--advertise", link.url] };
      };
      await inCluster({ postgres, nodes: 2, flags: lease, own }, async ({ load }) => {
        const work = load();
        await work.begin();
        const at = tickNow();
        for (let turn = 0; turn < 10; turn++) {
          await work.more(60);
          for (const link of links) link.cut();
        }
        await back(work);
        for (const link of links) link.hush();
        await later(SILENT_MS);
        for (const link of links) link.restore();
        await back(work);
        for (const link of links) link.silence();
        await later(SILENT_MS);
        for (const link of links) link.restore();
        await back(work);
        const judged = await work.judge();
        print("ten cuts and two silences of the links", work, judged, at);
        expect(work.troubles).toEqual([]);
        for (const link of links) await link.close();
      });
    });

    it("gets another owner when the owner cannot reach PostgreSQL, and the old owner becomes a member again", async () => {
      const links: Link[] = [];
      const store = postgres.newUrl();
      const own = async (index: number) => {
        if (index > 0) return {};
        const link = await openLink(postgres.port);
        links.push(link);
        return { store: store.replace(/:\d+\//, `:${new URL(link.url).port}/`) };
      };
      await inCluster({ postgres, nodes: 2, flags: lease, own, store }, async ({ cluster, load }) => {
        const [owner, other] = cluster.nodes as [NodeProcess, NodeProcess];
        const work = load({ through: () => [other] });
        await work.begin();
        await work.more();
        const at = tickNow();
        for (const cut of [false, true]) {
          // The disconnected node owns the data.
          if ((await cluster.owner()) !== owner) {
            await other.end();
            await until("the owner", BACK_MS_MAX, async () => (await owner.state()) === "owner");
            await other.start();
            await work.more();
          }
          if (cut) links[0]?.cut();
          else links[0]?.silence();
          if (!cut) await until("another owner", BACK_MS_MAX, async () => (await other.state()) === "owner");
          await work.more();
          links[0]?.restore();
          await until("a member or owner again", BACK_MS_MAX, async () => /member|owner/.test((await owner.state()) ?? ""));
        }
        await back(work);
        const judged = await work.judge();
        print("the owner cut off from PostgreSQL", work, judged, at);
        expect(work.troubles).toEqual([]);
        await links[0]?.close();
      });
    });

    it("finds out what was committed when the connection to PostgreSQL breaks right after a commit", async () => {
      const proxies: PostgresProxy[] = [];
      const store = postgres.newUrl();
      const own = async () => {
        const proxy = await openProxy(postgres.port);
        proxies.push(proxy);
        return { store: store.replace(/:\d+\//, `:${proxy.port}/`) };
      };
      await inCluster({ postgres, nodes: 2, flags: lease, own, store }, async ({ load }) => {
        const work = load({ mayRefuse: true });
        await work.begin();
        const at = tickNow();
        for (let turn = 0; turn < 20; turn++) {
          for (const proxy of proxies) proxy.lose(turn % 2 === 0 ? "response" : "request");
          await work.more(20);
        }
        await back(work);
        print("20 connections lost at a commit", work, await work.judge(), at);
        for (const proxy of proxies) proxy.close();
      });
    });

    it("keeps every deadline when the clocks of its nodes are ten minutes apart", async () => {
      const own = (index: number) => ({ env: { NODE_OPTIONS: ahead(index === 0 ? -CLOCKS_APART_MS / 2 : CLOCKS_APART_MS / 2) } });
      await inCluster({ postgres, nodes: 2, flags: lease, own }, async ({ cluster, load }) => {
        const work = load();
        await work.begin();
        const at = tickNow();
        for (let turn = 0; turn < 4; turn++) {
          await work.more();
          const owner = await cluster.owner();
          await owner.kill();
          await cluster.owner();
          await work.more();
          await owner.start();
        }
        const judged = await work.judge();
        print("four kills with clocks ten minutes apart", work, judged, at);
        expect(work.troubles).toEqual([]);
      });
    });

    it("switches to a synchronous standby that is promoted, and loses nothing", async () => {
      const primary = await TestPostgres.start({ durable: true });
      const standby = await primary.standby();
      try {
        await primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
        await primary.query("SELECT pg_reload_conf()");
        await until("a synchronous standby", BACK_MS_MAX, async () => {
          const found = await primary.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
          return found.length > 0;
        });
        const store = `postgres://longshore@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres?schema=longshore`;
        await inCluster({ postgres: primary, nodes: 2, flags: lease, store }, async ({ load }) => {
          const work = load({ mayRefuse: true });
          await work.begin();
          await work.more(200);
          const at = tickNow();
          await primary.down("SIGQUIT");
          await standby.query("ALTER SYSTEM RESET synchronous_standby_names");
          await standby.query("SELECT pg_promote()");
          await back(work);
          print("promotion of a synchronous standby", work, await work.judge(), at);
        });
      } finally {
        await Promise.all([primary.remove(), standby.remove()]);
      }
    });
  });
