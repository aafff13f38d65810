// The bus over HTTP: the contract on a real server, and behaviour that only a network shows.
import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { openHttpBus } from "../../../src/bus/http.ts";
import { memberMs } from "../../../src/bus/http-wire.ts";
import { serve } from "../../../src/server/index.ts";
import { TestClock } from "../../../src/testing/clock.ts";
import { busSuite } from "../../contract/bus-suite.ts";
import { until } from "../../support/until.ts";

async function server(options: Parameters<typeof serve>[0] = {}) {
  const one = await serve({ port: 0, ephemeral: true, ...options });
  onTestFinished(() => one.close(0));
  return { ...one, url: one.url as string };
}

const base = "/flowkit/v1/bus";

interface Answer {
  taken: number | null;
  records: { value: string }[];
  error?: { code: string; field: string };
}

async function post(url: string, path: string, body: unknown) {
  const response = await fetch(`${url}${base}/${path}`, { method: "POST", body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Answer };
}

describe("the bus over HTTP", () => {
  busSuite(async () => {
    const { url } = await server();
    const prefix = `t${randomUUID().slice(0, 8)}.`;
    return {
      prefix,
      async open() {
        const bus = openHttpBus({ url: url + base, againMs: 1 });
        onTestFinished(() => bus.close());
        return bus;
      },
    };
  });

  it("waits for a server that is down, and continues with the next one", async () => {
    const first = await server();
    const { port } = first;
    const told: string[] = [];
    const trouble = { failing: (what: string) => told.push(what), working: () => {} };
    const bus = openHttpBus({ url: first.url + base, againMs: 1, trouble });
    onTestFinished(() => bus.close());
    const values: string[] = [];
    const consumer = bus.subscribe({
      group: "g",
      topics: ["a"],
      from: "earliest",
      handle: async (records) => void values.push(...records.map(({ value }) => Buffer.from(value).toString())),
    });
    await consumer.ready;
    await first.close(0);
    const publishing = bus.publish([{ topic: "a", key: null, value: "1" }]);
    await until(() => told.some((what) => what.startsWith("publishing")) && told.some((what) => what.startsWith("taking")));
    await server({ port: port as number });
    await publishing;
    await until(() => values.length === 1);
    await consumer.close();
  });

  it("rejects after its maximum wait, with the address", async () => {
    const { url, close } = await server();
    await close(0);
    const bus = openHttpBus({ url: url + base, againMs: 1, patienceMs: 0 });
    const publishing = bus.publish([{ topic: "a", key: null, value: "1" }]);
    await expect(publishing).rejects.toMatchObject({ code: "LONGSHORE_UNREACHABLE", message: expect.stringContaining(new URL(url).host) });
    await bus.close();
  });

  it("reports why a server refuses, and tries again until it does not", async () => {
    const told: string[] = [];
    const trouble = { failing: (_: string, error: unknown) => told.push((error as Error).message), working: () => {} };
    const first = await server({ flowkit: { brokers: "127.0.0.1:1" }, logger: { level: "silent" } });
    const bus = openHttpBus({ url: first.url + base, againMs: 1, trouble });
    onTestFinished(() => bus.close());
    await expect(bus.publish([{ topic: "a", key: null, value: "1" }])).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
    const consumer = bus.subscribe({ group: "g", topics: ["a"], from: "earliest", handle: async () => {} });
    await until(() => told.length > 1);
    expect(told[0]).toMatch(
      /talks to FlowKit's workers through Kafka at 127.0.0.1:1: give the worker these brokers, in addition to this address\.$/,
    );
    await first.close(0);
    await server({ port: first.port as number });
    await consumer.ready;
  });

  it("is not opened by a server whose broker addresses are invalid", async () => {
    await expect(server({ flowkit: { brokers: "k:1, kafka" } })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: 'brokers is "kafka", expected addresses such as kafka:9092.',
    });
  });

  it("gives the records of a silent member to others", async () => {
    const clock = new TestClock(Date.now());
    const { url } = await server({ clock });
    const asking = { group: "g", topics: ["a"], from: "earliest", max: 10 };
    await post(url, "publish", { records: [{ topic: "a", key: null, value: "1" }] });
    const first = await post(url, "take", { ...asking, member: "gone" });
    expect(first.body).toMatchObject({ taken: expect.any(Number), records: [{ topic: "a", value: "1" }] });
    const next = post(url, "take", { ...asking, member: "next", waitMs: 30_000 });
    await until(() => clock.pending > 1);
    await clock.advance(memberMs / 2);
    // A heartbeat.
    expect((await post(url, "take", { ...asking, max: 0, member: "gone" })).body.taken).toBe(null);
    await clock.advance(2 * memberMs);
    expect((await next).body.records.length + (await post(url, "take", { ...asking, member: "next" })).body.records.length).toBe(1);
  });

  it("takes back records that did not reach a member, at its next request", async () => {
    const { url } = await server();
    await post(url, "publish", { records: [{ topic: "a", key: null, value: "1" }] });
    const asking = { group: "g", member: "m", topics: ["a"], from: "earliest", max: 10 };
    const lost = await post(url, "take", asking);
    expect((await post(url, "take", asking)).body.taken).toBe(null);
    const again = await post(url, "take", { ...asking, holding: [] });
    expect(again.body.records).toEqual(lost.body.records);
  });

  it.each([
    ["publish", { records: 1 }, "records"],
    ["publish", { records: [{ topic: "a", key: 1, value: "" }] }, "records[0].key"],
    ["publish", { records: [{ topic: "a", key: null }] }, "records[0].value"],
    ["publish", { records: [{ topic: "a b", key: null, value: "" }] }, "records[0].topic"],
    ["take", { group: "g", member: "m", topics: ["a"], max: -1 }, "max"],
    ["take", { group: "g", member: "m", topics: ["a"], max: 1, waitMs: 1e9 }, "waitMs"],
    ["take", { group: "", member: "m", topics: ["a"], max: 1 }, "group"],
    ["take", { group: "g", member: "m", topics: "a", max: 1 }, "topics"],
    ["take", { group: "g", member: "m", topics: ["a"], max: 1, commit: ["x"] }, "commit[0]"],
    ["take", [], "body"],
  ])("refuses %s of %j, naming %s", async (path, body, field) => {
    const { url } = await server();
    const refused = await post(url, path, body);
    expect([refused.status, refused.body.error]).toEqual([400, expect.objectContaining({ code: "LONGSHORE_BAD_INPUT", field })]);
  });
});
