// Waiting runs of durable functions: no list and no API shows them as running or queued.

import { expect, it, onTestFinished } from "vitest";
import { connect } from "../../src/client/index.ts";
import { serve } from "../../src/server/index.ts";
import { work } from "../../src/work.ts";
import { workflow } from "../../src/workflow.ts";
import { longshore } from "../support/cli.ts";
import { untilElsewhere } from "../support/until.ts";

it("the client, the API and the commands show that a run waits for a signal, sleeps, or waits for a child", async () => {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const approval = workflow("approval", async (w) => w.signal("approve"));
  const nap = workflow("nap", async (w) => w.sleep("2h"));
  const parent = workflow("parent", async (w) => w.run(nap, null), { uses: [nap] });
  const worker = await work({ workflows: [approval, nap, parent], on: server, logger: false, signals: false });
  onTestFinished(() => worker.stop({ force: true }));
  const client = connect(server.url as string);
  const open = await client.start(approval, null);
  const asleep = await client.start(nap, null);
  const above = await client.start(parent, null);
  const waits = async (reason: string, handle: { status(): Promise<{ waiting?: { reason: string } | null }> }) =>
    untilElsewhere(async () => (await handle.status()).waiting?.reason === reason);
  await waits("signal", open);
  await waits("sleeping", asleep);
  await waits("record", above);
  expect((await open.status()).waiting).toMatchObject({ text: 'waiting for signal "approve"', signal: "approve", step: "approve" });
  expect((await server.run(asleep.id).status()).waiting).toMatchObject({ reason: "sleeping", step: "sleep" });

  type Body = { items: { state: string }[]; states?: string[] };
  const api = async (path: string) => (await fetch(`${server.url}/api/longshore/v1${path}`)).json() as Promise<Body>;
  const statesOf = async (id: string) => (await api(`/runs/${id}/steps`)).items.map(({ state }) => state);
  expect(await statesOf(open.id)).toEqual(["awaiting", "awaiting"]);
  expect(await statesOf(asleep.id)).toEqual(["awaiting", "sleeping"]);
  expect(await statesOf(above.id)).toEqual(["awaiting", "awaiting"]);
  expect((await api("/tasks?state=queued")).items).toEqual([]);
  expect((await api("/tasks?state=sleeping")).items).toHaveLength(2);
  expect((await api("/tasks?state=awaiting")).items).toHaveLength(6);
  expect((await api(`/runs/${asleep.id}/timeline`)).states).toEqual(["awaiting", "sleeping"]);

  const shown = (await longshore(["runs"], { env: { LONGSHORE_URL: server.url as string } })).stdout;
  expect(shown).toMatch(/ approval +waiting .* waiting for signal "approve"\n/);
  expect(shown).toMatch(/ nap +sleeping .* sleeping until (?:\d{4}-\d\d-\d\d )?\d\d:\d\d\n/);
  expect(shown).toMatch(/ parent +running .* 1 step left\n/);
});
