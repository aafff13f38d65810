// The attacker holds a worker token of a server that is FlowKit's coordinator, with its bus over HTTP. Commands to workers and reports of
// workers are records on that bus. Once any worker could send commands and remove reports.

import { once } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import { EmbeddedBus } from "../../src/bus/embedded-bus.ts";
import { callerWith } from "../../src/core/actions.ts";
import type { HttpRequest, Route } from "../../src/net/http/http.ts";
import { busRoutes } from "../../src/protocols/flowkit/server/bus-routes.ts";
import { openEngine } from "../../src/server/engine.ts";
import { serve } from "../../src/server/index.ts";

const secrets = { operator: "operator-secret-0123456789", worker: "worker-secret-0123456789" };

async function production() {
  const tokens = [`operator:${secrets.operator}:operator`, `worker:${secrets.worker}:worker`];
  const server = await serve({ ephemeral: true, port: 0, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const post = async (who: keyof typeof secrets, path: string, body: object) => {
    const headers = { authorization: `Bearer ${secrets[who]}` };
    const answer = await fetch(`${server.url}/flowkit/v1/bus/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, body: (await answer.json()) as { records?: { value: string }[]; error?: { message: string } } };
  };
  const publish = (who: keyof typeof secrets, ...topics: string[]) =>
    post(who, "publish", { records: topics.map((topic) => ({ topic, key: null, value: `from the ${who}` })) });
  const take = (who: keyof typeof secrets, topic: string, group = "coordinator.status.v1") =>
    post(who, "take", { group, member: who, topics: [topic], from: "earliest", max: 10 });
  return { post, publish, take };
}

it("a worker token sends no commands, queries or signals to other workers", async () => {
  const { publish, take } = await production();
  await take("worker", "cmd.build.v1", "workers.build.v1");
  for (const topic of ["cmd.build.v1", "query.tasks.v1", "signals.v1", "anything.else"]) {
    const { status, body } = await publish("worker", "status.build.v1", topic);
    expect([topic, status]).toEqual([topic, 403]);
    expect(body.error?.message).toContain(topic);
  }
  expect((await take("worker", "cmd.build.v1", "workers.build.v1")).body.records).toEqual([]);
  expect((await publish("operator", "cmd.build.v1")).status).toBe(200);
  expect((await take("worker", "cmd.build.v1", "workers.build.v1")).body.records).toMatchObject([{ value: "from the operator" }]);
});

it("a worker token cannot remove reports of workers to the coordinator", async () => {
  const { publish, take } = await production();
  for (const topic of ["status.build.v1", "workers.announce.v1", "reply.tasks.v1"]) {
    expect([topic, (await publish("worker", topic)).status]).toEqual([topic, 200]);
    expect([topic, (await take("worker", topic)).status]).toEqual([topic, 403]);
  }
});

it("a worker token cannot acknowledge or give back records that the coordinator has taken", async () => {
  const { post, publish, take } = await production();
  await take("operator", "status.build.v1", "elsewhere");
  await publish("worker", "status.build.v1");
  const asked = { group: "elsewhere", member: "coordinator", max: 10 };
  const lead = (more: object) => post("operator", "take", { ...asked, topics: ["status.build.v1"], ...more });
  const { taken } = (await lead({})).body as { taken: number };
  expect(taken).toEqual(expect.any(Number));
  // The names of the coordinator's members, including its own process, are not secret.
  const spoof = (more: object) => post("worker", "take", { ...asked, topics: [], ...more });
  expect((await spoof({ leave: true })).status).toBe(200);
  expect((await lead({ holding: [taken] })).body.records).toEqual([]);
  expect((await spoof({ commit: [taken], max: 0 })).status).toBe(200);
  await lead({ leave: true });
  expect((await lead({})).body.records).toMatchObject([{ value: "from the worker" }]);
});

it("a worker token cannot act for a reader in the server's own process", async () => {
  const engine = await openEngine({ directory: null });
  onTestFinished(() => engine.close());
  const bus = new EmbeddedBus(engine.busLog);
  const [begun, over] = [new AbortController(), new AbortController()];
  const handling = once(begun.signal, "abort");
  onTestFinished(async () => {
    over.abort();
    await bus.close();
  });
  const handle = async () => {
    begun.abort();
    await once(over.signal, "abort");
  };
  const reader = bus.subscribe({ group: "coordinator", topics: ["status.build.v1"], from: "earliest", handle });
  await reader.ready;
  await bus.publish([{ topic: "status.build.v1", key: null, value: "a report" }]);
  await handling;
  const route = busRoutes({ busLog: engine.busLog, clock: engine.clock }).routes.find(({ action }) => action === "bus.take") as Route;
  const ids = Array.from({ length: 20 }, (_, at) => at);
  const text = JSON.stringify({ group: "g", member: "local-1", topics: [], max: 0, commit: ids });
  await route.handle({ text, caller: callerWith("worker", ["worker"]), gone: new AbortController().signal } as HttpRequest);
  const held = await Promise.all(ids.map((id) => engine.busLog.commit("local-1", id)));
  expect(held).toContain(true);
});
