// What the dashboard's pages read and change through a node that does not own the data. The changes stay when another server opens the
// data.

import { describe, expect, it } from "vitest";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import type { Server } from "../../src/server/index.ts";
import { postgresMissing } from "../support/postgres.ts";
import { sharedPostgres } from "../support/postgres-servers.ts";

const unserved = task("unserved", async () => null);
const idle = graph("idle", (g) => g.step(unserved, null));
const ours = "/api/longshore/v1";

// biome-ignore lint/suspicious/noExplicitAny: a test reads fields of responses.
type Body = any;

if (postgresMissing !== undefined) it("a node passes on what pages need", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("pages on a node that does not own the data", () => {
    const { postgres, open } = sharedPostgres();
    const ask = async ({ url }: Server, method: string, path: string, body?: unknown) => {
      const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
      const reply = await fetch(`${url}${ours}${path}`, { method, ...init });
      return { status: reply.status, body: (reply.status === 204 ? null : await reply.json()) as Body };
    };

    it("can read counts, metrics and errors, and can pause, preview and remove", async () => {
      const store = postgres().newUrl();
      const owner = await open(store);
      const node = await open(store);
      const { id } = await node.start(idle, null);
      expect((await ask(node, "GET", "/counts?by=state,workflow")).body).toMatchObject({ total: 1, items: [{ workflow: "idle" }] });
      expect((await ask(node, "GET", "/stats")).body.counts.started.at(-1)).toBeTypeOf("number");
      expect((await ask(node, "GET", "/errors")).body).toEqual({ items: [], runs: 0 });
      expect((await ask(node, "POST", "/queues/pause", { lane: "unserved", reason: "why" })).status).toBe(200);
      expect((await ask(owner, "GET", `/tasks/${id}.0`)).body.waiting.reason).toBe("paused");
      expect((await ask(node, "POST", "/workers/w1/cordon", {})).body.cordoned).toMatchObject({ by: null });
      expect((await ask(node, "POST", `/runs/${id}/cancel`, { dry: true })).body).toMatchObject({ applies: true, state: "cancelled" });
      expect((await ask(node, "POST", `/runs/${id}/cancel`)).body.state).toBe("cancelled");
      expect((await ask(node, "GET", "/counts")).body.items).toEqual([{ state: "cancelled", count: 1 }]);
      expect((await ask(node, "DELETE", `/runs/${id}`)).status).toBe(204);
      expect((await ask(node, "GET", "/counts")).body.total).toBe(0);
      await owner.close(0);
      await expect
        .poll(async () => (await ask(node, "GET", "/queues")).body.items, { timeout: 15_000 })
        .toMatchObject([{ lane: "unserved", paused: { reason: "why" } }]);
    });
  });
