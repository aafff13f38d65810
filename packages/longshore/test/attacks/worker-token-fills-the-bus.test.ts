// The attacker holds a worker token of a server that is FlowKit's coordinator, and joins more and more groups and topics on its bus. The
// number of groups had no limit, and each join read all of them. Topics are never removed, so none were left for the coordinator. Each
// waiting take watched a thousand topics, and the number of takes had no limit.

import { expect, it, onTestFinished, vi } from "vitest";
import { groupIdleMs, groupsMax, guestTopicsMax } from "../../src/core/bus/log.ts";
import type { LocalBus } from "../../src/engine/bus/local-bus.ts";
import { openEngine } from "../../src/server/engine.ts";
import { serve } from "../../src/server/index.ts";
import { TestClock } from "../../src/testing/clock.ts";

const worker = "worker-secret-0123456789";

async function bus() {
  const clock = new TestClock();
  const engine = await openEngine({ directory: null, clock });
  onTestFinished(() => engine.close());
  return { clock, log: engine.busLog };
}

function thousand(prefix: string): string[] {
  return Array.from({ length: 1_000 }, (_, at) => `cmd.${prefix}${at}.v1`);
}

it("topics are left for the coordinator", async () => {
  const { log } = await bus();
  for (let at = 0; at < guestTopicsMax / 1_000; at++) await log.join("workers", thousand(`t${at}-`), "latest", "guest");
  await expect(log.join("workers", ["cmd.one-more.v1"], "latest", "guest")).rejects.toThrow(/at most 5000 topics/);
  await expect(log.append([{ topic: "status.one-more.v1", key: null, value: "" }], "guest")).rejects.toThrow(/at most 5000 topics/);
  await log.join("coordinator", thousand("own-"), "latest");
});

it("groups are left for the coordinator, and for other workers when unused groups were silent for an hour", async () => {
  const { clock, log } = await bus();
  const topics = thousand("t");
  for (let at = 0; at < groupsMax / topics.length; at++) await log.join(`group${at}`, topics, "latest", "guest");
  await expect(log.join("one-more", ["cmd.t1.v1"], "latest", "guest")).rejects.toThrow(/at most 100000 groups/);
  await log.join("coordinator", ["cmd.t1.v1"], "latest");
  await clock.advance(groupIdleMs + 60_001);
  await log.join("one-more", ["cmd.t1.v1"], "latest", "guest");
});

it("the server remembers a limited number of topics of HTTP clients", async () => {
  const server = await serve({ ephemeral: true, port: 0, tokens: [`worker:${worker}:worker`], logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const join = async (member: string, leave: boolean): Promise<number> => {
    const body = JSON.stringify({ group: "workers", member, topics: thousand("t"), commit: [], max: 0, leave });
    const headers = { authorization: `Bearer ${worker}` };
    return (await fetch(`${server.url}/flowkit/v1/bus/take`, { method: "POST", headers, body })).status;
  };
  const statuses: number[] = [];
  for (let at = 0; at < 201; at++) statuses.push(await join(`member${at}`, false));
  expect(statuses.indexOf(429)).toBe(200);
  await join("member0", true);
  expect(await join("another", false)).toBe(200);
});

it("waiting takes watch a limited number of topics, and the oldest ones end when there are more", async () => {
  const server = await serve({ ephemeral: true, port: 0, tokens: [`worker:${worker}:worker`], logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${worker}` };
  const body = JSON.stringify({ group: "workers", member: "m", topics: thousand("t"), commit: [], max: 1, waitMs: 30_000 });
  const answered: string[] = [];
  const takes = Array.from({ length: 130 }, async () => {
    const init = { method: "POST", headers, body, signal: leaving.signal };
    const answer = await fetch(`${server.url}/flowkit/v1/bus/take`, init).catch(() => undefined);
    if (answer !== undefined) answered.push(await answer.text());
  });
  // A hundred of them have room. The others get an empty response and try again.
  await vi.waitFor(() => expect(answered).toHaveLength(30), { timeout: 10_000 });
  expect(new Set(answered)).toEqual(new Set(['{"taken":null,"records":[]}']));
  leaving.abort();
  await Promise.all(takes);
});

it("the cost of a leaving member depends on its own takes, not on those of all members", async () => {
  const clock = new TestClock();
  const engine = await openEngine({ directory: null, clock });
  onTestFinished(() => engine.close());
  const log = engine.busLog as LocalBus;
  await log.append([{ topic: "cmd.a.v1", key: null, value: "" }]);
  const members = Array.from({ length: 300 }, (_, at) => `member${at}`);
  for (const member of members) {
    await log.join(member, ["cmd.a.v1"], "earliest", "guest");
    expect(await log.take({ group: member, member, topics: ["cmd.a.v1"], max: 1 })).not.toBeNull();
  }
  for (const member of members) log.release(member);
  expect(log.releasesVisited).toBe(members.length);
  expect(await log.take({ group: "member7", member: "another", topics: ["cmd.a.v1"], max: 1 })).not.toBeNull();
});

it("a member has a limited number of uncommitted takes", async () => {
  const server = await serve({ ephemeral: true, port: 0, tokens: [`operator:${worker}:operator`], logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const headers = { authorization: `Bearer ${worker}` };
  const send = (path: string, body: object) =>
    fetch(`${server.url}/flowkit/v1/bus/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const records = Array.from({ length: 1_001 }, () => ({ topic: "cmd.a.v1", key: null, value: "" }));
  await send("publish", { records });
  const take = (commit: number[]) => send("take", { group: "g", member: "m", topics: ["cmd.a.v1"], from: "earliest", commit, max: 1 });
  let taken = 0;
  for (let at = 0; at < 1_000; at++) taken = ((await (await take([])).json()) as { taken: number }).taken;
  expect((await take([])).status).toBe(429);
  expect(await (await take([taken])).json()).toMatchObject({ taken: taken + 1 });
});
