// Two workflows send the events that start each other, from a handler and from a durable function, twice in each run. Only events of
// Conductor's EVENT tasks belonged to the family of their run, so the number of open runs doubled with every level.

import { expect, it, onTestFinished } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { connect } from "../../src/client/connect.ts";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import type { Server } from "../../src/server/handle.ts";
import { serve } from "../../src/server/server.ts";
import { work } from "../../src/work.ts";
import { workflow } from "../../src/workflow.ts";
import { all } from "../contract/client-fixtures.ts";
import { deferred } from "../support/until.ts";

const [operator, holder] = ["o".repeat(16), "w".repeat(16)];
const familyRuns = 8;
/** Starts that one batch commits are not counted for one another: at most those that the worker performs at once. */
const openMax = 1 + familyRuns + 4;

/** Each run sends two events, and stays open. */
async function setup(clientOf: (server: Server) => Client) {
  const server = await serve({
    port: 0,
    ephemeral: true,
    quotas: { familyRuns },
    logger: { level: "silent" },
    tokens: [`operator:${operator}`, `worker:${holder}`],
  });
  onTestFinished(() => server.close());
  const client = clientOf(server);
  /** The refusal of the first event that is one too many. */
  const refusal = deferred<Error>();
  let sent = 0;
  const sendTwice = async (event: string) => {
    for (const half of [1, 2]) await client.emit(event, { half }).catch(refusal.resolve);
    sent += 2;
    if (sent > 10 * openMax) refusal.resolve(new Error(`${sent} events were sent`));
  };
  const tell = task("tell", () => sendTwice("to a function"));
  /** No worker has it. */
  const leaf = task("leaf", () => null);
  const handled = graph("handled", (g) => g.step(leaf, null, { after: [g.step(tell, null)] }), { on: { event: "to a handler" } });
  const coded = workflow(
    "coded",
    async (w) => {
      await w.local("tell", () => sendTwice("to a handler"));
      await w.signal("never");
    },
    { on: { event: "to a function" } },
  );
  const worker = await work({ tasks: [tell], workflows: [coded], on: server, slots: 2, logger: false, signals: false });
  onTestFinished(() => worker.stop({ force: true }));
  for (const each of [handled, coded]) await client.define(each);
  return { client, refusal: refusal.promise, open: async () => (await all(client.runs({ state: "running" }))).length };
}

const clients: readonly [string, (server: Server) => Client][] = [
  ["the server object", (server) => server],
  ["a client with an operator token", (server) => connect(server.url as string, { token: operator, retryFor: "0ms" })],
];

it.each(clients)("events that handlers and functions send by %s start runs below the root of their run", async (_name, clientOf) => {
  const { client, refusal, open } = await setup(clientOf);
  const root = await client.start("handled");
  expect((await refusal).message).toContain(`Run ${root.id} has the maximum of ${familyRuns} open runs`);
  expect(await open()).toBeLessThanOrEqual(openMax);
});

it.each(clients)("an event that %s sends outside of a run starts a new root", async (_name, clientOf) => {
  const { client, refusal } = await setup(clientOf);
  await client.start("handled");
  await refusal;
  expect((await client.emit("to a handler")).runs).toMatchObject([{ workflow: "handled", created: true }]);
});

it("a worker token sends no events", async () => {
  const server = await serve({
    port: 0,
    ephemeral: true,
    logger: { level: "silent" },
    tokens: [`operator:${operator}`, `worker:${holder}`],
  });
  onTestFinished(() => server.close());
  const client = connect(server.url as string, { token: holder });
  await expect(client.emit("to a handler")).rejects.toMatchObject({ code: "LONGSHORE_UNAUTHORIZED" });
});
