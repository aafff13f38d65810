// The attacker holds a worker token of a server that is FlowKit's coordinator, with its bus over HTTP. Commands to workers are records on that
// bus, and so is what workers tell the coordinator: once any worker could send the first and take away the second.

import { expect, it, onTestFinished } from "vitest";
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
  return { publish, take };
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

it("a worker token takes away nothing of what workers tell the coordinator", async () => {
  const { publish, take } = await production();
  for (const topic of ["status.build.v1", "workers.announce.v1", "reply.tasks.v1"]) {
    expect([topic, (await publish("worker", topic)).status]).toEqual([topic, 200]);
    expect([topic, (await take("worker", topic)).status]).toEqual([topic, 403]);
  }
});
