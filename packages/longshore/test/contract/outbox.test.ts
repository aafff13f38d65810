// The outbox on SQLite. Each stored message must be sent, and readers must see it once, for any failure of the bus and any end of the
// process.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Outbox } from "../../src/bus/outbox.ts";
import type { Outgoing } from "../../src/core/bus/bus.ts";
import type { OutboxMessage } from "../../src/core/bus/outbox-store.ts";
import { LongshoreError } from "../../src/core/errors.ts";
import { LocalOutbox } from "../../src/engine/bus/local-outbox.ts";
import { GroupCommit } from "../../src/engine/commit.ts";
import type { RowStore } from "../../src/engine/rows.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { deferred, until } from "../support/until.ts";
import { missingRows } from "./missing-rows.ts";

type Wrap = (rows: RowStore) => RowStore;

async function openOn(wrap: Wrap, file = ":memory:", clock = new TestClock()) {
  const db = await openDatabase(file, { synchronous: "NORMAL" });
  migrate(db);
  const store = wrap(sqliteRows(db, () => null));
  const commit = new GroupCommit(store, () => clock.now());
  const outbox = new LocalOutbox({ store, commit, clock });
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await commit.close();
    db.close();
  };
  onTestFinished(close);
  const rows = () => db.prepare("SELECT state, attempts, due_at, error FROM outbox ORDER BY id").all();
  return { store: outbox, clock, rows, close };
}

function fakeBus(refuse: (record: Outgoing, nth: number) => Error | undefined = () => undefined) {
  const sent: Outgoing[] = [];
  let calls = 0;
  return {
    name: "a bus",
    sent,
    calls: () => calls,
    values: () => sent.map(({ value }) => value),
    async publish(records: readonly Outgoing[]) {
      const error = refuse(records[0] as Outgoing, ++calls);
      if (error !== undefined) throw error;
      sent.push(...records);
    },
  };
}

const message = (dedupId: string, more: Partial<OutboxMessage> = {}): OutboxMessage => ({
  topic: "cmd.a.v1",
  key: "task:node",
  dedupId,
  value: dedupId,
  ...more,
});
const away = new LongshoreError("LONGSHORE_UNREACHABLE", "no broker");

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "longshore-outbox-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return join(path, "outbox.db");
}

const wraps: [string, Wrap][] = [
  ["the rows at hand", (rows) => rows],
  ["rows that are read later", (rows) => missingRows(rows)],
];

describe.each(wraps)("the outbox on %s", (_name, wrap) => {
  const openStore = (file?: string, clock?: TestClock) => openOn(wrap, file, clock);

  it("skips an unsent message when a newer one with its key is enqueued and only the newest matters", async () => {
    const { store, clock, rows } = await openStore();
    const bus = fakeBus((_record, nth) => (nth === 1 ? away : undefined));
    const outbox = new Outbox({ bus, store, owner: "o", clock, random: () => 0.5, newestOnly: (topic) => topic.startsWith("cmd.") });
    await outbox.start();
    await outbox.enqueue(message("1"));
    for (const id of ["2", "3"]) await outbox.enqueue(message(id));
    for (const id of ["s1", "s2"]) await outbox.enqueue(message(id, { topic: "signals.v1" }));
    await until(() => rows()[0]?.attempts === 1);
    await clock.advance(250);
    await until(() => rows().every(({ state }) => state === "sent"));
    expect(bus.values().sort()).toEqual(["3", "s1", "s2"]);
    await outbox.close();
  });

  it("leaves a message unchanged when the close interrupts its sending", async () => {
    const { store, clock, rows } = await openStore();
    const sending = deferred<void>();
    const outbox = new Outbox({ bus: { name: "a bus", publish: () => sending.promise }, store, owner: "o", clock });
    await outbox.start();
    await outbox.enqueue(message("1"));
    const closed = outbox.close();
    sending.reject(new LongshoreError("LONGSHORE_CLOSED", "The bus has been closed."));
    await closed;
    expect(rows()).toMatchObject([{ state: "pending", attempts: 0, error: null }]);
  });

  it("[T61] sends in the third attempt after two failures, with pauses", async () => {
    const { store, clock, rows } = await openStore();
    const bus = fakeBus((_record, nth) => (nth <= 2 ? away : undefined));
    const outbox = new Outbox({ bus, store, owner: "o", clock, random: () => 0.5 });
    await outbox.start();
    await outbox.enqueue(message("1"));
    await until(() => rows()[0]?.attempts === 1);
    expect(rows()[0]).toMatchObject({ state: "pending", due_at: clock.now() + 250, error: "no broker" });
    await clock.advance(249);
    expect(bus.calls()).toBe(1);
    await clock.advance(1);
    await until(() => rows()[0]?.attempts === 2);
    await clock.advance(400);
    await until(() => rows()[0]?.state === "sent");
    expect(bus.values()).toEqual(["1"]);
    await outbox.close();
  });

  it("[T62] stores and sends a message once when it is enqueued twice", async () => {
    const { store, clock, rows } = await openStore();
    const bus = fakeBus();
    const outbox = new Outbox({ bus, store, owner: "o", clock });
    await outbox.start();
    await Promise.all([outbox.enqueue(message("1")), outbox.enqueue(message("1")), outbox.enqueue(message("1", { key: "other" }))]);
    await until(() => rows().every(({ state }) => state === "sent"));
    await outbox.enqueue(message("1"));
    expect([rows().length, bus.sent.length]).toEqual([2, 2]);
    await outbox.close();
  });

  // The reader drops the repeated message because of its dedup_id: see the worker's commands.
  it("[T63, T64] sends a message again when it has not recorded the send, and otherwise not", async () => {
    const file = folder();
    const before = await openStore(file);
    const bus = fakeBus();
    const first = new Outbox({ bus, store: before.store, owner: "first", clock: before.clock });
    await first.start();
    await first.enqueue(message("noted"));
    await until(() => before.rows()[0]?.state === "sent");
    // The process ends after it has sent the message and before it has recorded this.
    const crashing = { ...before.store, settle: () => new Promise<never>(() => {}) };
    const second = new Outbox({
      bus,
      store: { ...crashing, add: before.store.add.bind(before.store), pending: before.store.pending.bind(before.store), leave: () => {} },
      owner: "first",
      clock: before.clock,
    });
    await second.start();
    await second.enqueue(message("not noted"));
    await until(() => bus.sent.length === 2);
    await before.close();

    const after = await openStore(file);
    const third = new Outbox({ bus, store: after.store, owner: "third", clock: after.clock });
    await third.start();
    await third.enqueue(message("noted"));
    await until(() => after.rows().every(({ state }) => state === "sent"));
    expect(bus.values()).toEqual(["noted", "not noted", "not noted"]);
    await third.close();
  });

  it("[T65] waits longer before each attempt, up to a limit, with a jitter of a fifth", async () => {
    for (const [random, share] of [
      [0, 0.8],
      [0.5, 1],
      [1, 1.2],
    ] as const) {
      const { store, clock, rows } = await openStore();
      const outbox = new Outbox({
        bus: fakeBus(() => away),
        store,
        owner: "o",
        clock,
        random: () => random,
        backoffMsMin: 300,
        backoffMsMax: 1_000,
      });
      await outbox.start();
      await outbox.enqueue(message("1"));
      for (const [attempts, ms] of [300, 400, 800, 1_000, 1_000].entries()) {
        await until(() => rows()[0]?.attempts === attempts + 1);
        expect(rows()[0]?.due_at).toBe(clock.now() + ms * share);
        await clock.advance(ms * share);
      }
      await outbox.close();
    }
  });

  it("[T66] gives up a message after its last attempt, and reports this", async () => {
    const { store, clock, rows } = await openStore();
    const given: string[] = [];
    const bus = fakeBus((record) => (record.value === "bad" ? away : undefined));
    const failed = ({ dedupId }: OutboxMessage, error: string) => given.push(`${dedupId}: ${error}`);
    const outbox = new Outbox({ bus, store, owner: "o", clock, triesMax: 3, failed });
    await outbox.start();
    await Promise.all([outbox.enqueue(message("bad")), outbox.enqueue(message("good"))]);
    for (let attempts = 1; attempts < 3; attempts++) {
      await until(() => rows()[0]?.attempts === attempts);
      await clock.advance(60_000);
    }
    await until(() => rows().every(({ state }) => state !== "pending"));
    expect(rows().map(({ state, attempts }) => [state, attempts])).toEqual([
      ["failed", 3],
      ["sent", 0],
    ]);
    expect(given).toEqual(["bad: no broker"]);
    await outbox.close();
  });

  it("[A22] sends a message once when two coordinators use one store", async () => {
    const { store, clock, rows } = await openStore();
    const bus = fakeBus();
    const boxes = ["one", "other"].map((owner) => new Outbox({ bus, store, owner, clock }));
    const messages = Array.from({ length: 50 }, (_, at) => message(String(at)));
    await Promise.all(messages.map((each) => boxes[0]?.enqueue(each)));
    for (const box of boxes) await box.start();
    await Promise.all(messages.map((each) => boxes[1]?.enqueue(each)));
    await until(() => rows().every(({ state }) => state === "sent"));
    expect(bus.values()).toEqual(messages.map(({ value }) => value));
    for (const box of boxes) await box.close();
  });

  it("takes over the messages of an owner that has ended", async () => {
    const { store, clock } = await openStore();
    const bus = fakeBus();
    // It was not started, so it stores messages and does not send them.
    const gone = new Outbox({ bus, store, owner: "gone", clock });
    await gone.enqueue(message("1"));
    await gone.close();
    expect(bus.sent).toEqual([]);
    const next = new Outbox({ bus, store, owner: "next", clock });
    await next.start();
    await until(() => bus.sent.length === 1);
    await next.close();
  });

  it("keeps the order of messages with one key while one of them is retried", async () => {
    const { store, clock, rows } = await openStore();
    const bus = fakeBus((record, nth) => (record.value === "1" && nth === 1 ? away : undefined));
    const outbox = new Outbox({ bus, store, owner: "o", clock });
    await outbox.start();
    await Promise.all([message("1"), message("2"), message("3", { key: "other" })].map((each) => outbox.enqueue(each)));
    await until(() => bus.sent.length === 1);
    expect(bus.values()).toEqual(["3"]);
    await until(() => rows()[0]?.attempts === 1);
    await clock.advance(1_000);
    await until(() => bus.sent.length === 3);
    expect(bus.values()).toEqual(["3", "1", "2"]);
    await outbox.close();
  });

  it("[A23] drops a message at once that no bus would ever accept", async () => {
    const { store, clock, rows } = await openStore();
    const tooLarge = new LongshoreError("LONGSHORE_LIMIT", "A record has 2000000 bytes; at most 1000000 are taken.");
    const bus = fakeBus((record) => (record.value === "huge" ? tooLarge : undefined));
    const outbox = new Outbox({ bus, store, owner: "o", clock });
    await outbox.start();
    await Promise.all([outbox.enqueue(message("huge")), outbox.enqueue(message("next"))]);
    await until(() => bus.sent.length === 1);
    expect(rows()[0]).toMatchObject({ state: "failed", attempts: 1, error: expect.stringContaining("2000000 bytes") });
    expect(bus.calls()).toBe(2);
    await outbox.close();
  });

  it("keeps a limited number of messages in memory, and sends all in order", async () => {
    const { store, clock } = await openStore();
    const gate = deferred<void>();
    const sent: string[] = [];
    const bus = {
      name: "a bus",
      async publish([record]: readonly Outgoing[]) {
        await gate.promise;
        sent.push(record?.value as string);
      },
    };
    const outbox = new Outbox({ bus, store, owner: "o", clock });
    await outbox.start();
    const count = 12_000;
    for (let at = 0; at < count; at += 500) {
      await Promise.all(Array.from({ length: 500 }, (_, more) => outbox.enqueue(message(String(at + more), { key: `k${more % 50}` }))));
    }
    gate.resolve();
    await until(() => sent.length === count);
    for (let key = 0; key < 50; key++) {
      const own = sent.map(Number).filter((number) => number % 50 === key);
      expect(own).toEqual([...own].sort((a, b) => a - b));
    }
    await outbox.close();
  });

  it("removes messages that were sent a day ago or failed a week ago", async () => {
    const { store, clock, rows } = await openStore();
    const bus = fakeBus((record) => (record.value === "bad" ? new LongshoreError("LONGSHORE_BAD_INPUT", "no") : undefined));
    const outbox = new Outbox({ bus, store, owner: "o", clock });
    await outbox.start();
    await Promise.all([outbox.enqueue(message("bad")), outbox.enqueue(message("good"))]);
    await until(() => rows().every(({ state }) => state !== "pending"));
    for (const [days, states] of [
      [2, ["failed", "sent"]],
      [8, ["sent"]],
    ] as const) {
      await clock.advance(days * 24 * 3_600_000);
      await outbox.enqueue(message(`after ${days}`));
      await until(() => rows().length === states.length && rows().every(({ state }) => state !== "pending"));
      expect(rows().map(({ state }) => state)).toEqual(states);
    }
    await outbox.close();
  });
});
