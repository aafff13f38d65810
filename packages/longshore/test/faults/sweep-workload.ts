// The work during which every write of the store is recorded: one request after the other, on every path that writes. Each fact is written to
// `ledger` before its request and again after its response, so that at most one fact is uncertain at any time.
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { laneOf } from "../../src/engine/board/lanes.ts";
import type { Hold, TaskRow } from "../../src/engine/board/task.ts";
import type { BulkAction } from "../../src/engine/bulk/bulk.ts";
import { retentionPolicy } from "../../src/engine/run/retention.ts";
import type { Database } from "../../src/store/sqlite/driver.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type OpenEngine, openEngineWithStore } from "../support/engine.ts";
import { functionWorker, NAP_MS, PASSES, travel } from "./sweep-function.ts";

/** `key` is what a fact is about, `value` what is true of it from then on. */
export interface Ledger {
  sent(key: string, value: string): void;
  answered(): void;
}

export const LANES = ["first", "second", "inside", "last", "single", "worked"];
export const TERM_MS = 10_000;
/** Longer than the work that a check after a crash finishes takes, so that no tick comes meanwhile. */
const TICK_MS = 3_600_000;
/** Longer than all rounds and the check after them, so that every hand-out stays in its window. */
const RATE_MS = 1_000 * TICK_MS;
/** How long starts that come together are waited for. */
const DEBOUNCE_MS = 1_000;
/** What a run of a tick gets. */
export const tickInput = (schedule: string, tick: number) => JSON.stringify({ schedule, tick: new Date(tick).toISOString() });
export const READERS = { group: "readers", member: "m", topics: ["news"], max: 10 };

const step = (id: string, more: object = {}) => ({ id, task: id, input: null, ...more });

/** A blob that is unused for this long is removed by the next pruning, within a minute. */
const BLOB_AGE_MS = 90_000;
const PRUNING_MS = 60_000;
/** Far more than pruning needs. */
const MINUTES_MAX = 100;
/** Turns of the event loop that each pruning gets for its files. */
const PRUNING_TURNS = 100;

/** `opened` receives the database before anything is done. */
export async function playWorkload(directory: string, rounds: number, ledger: Ledger, opened = (_db: Database) => {}): Promise<void> {
  const clock = new TestClock();
  const retention = retentionPolicy({ blobs: { ageMs: BLOB_AGE_MS } });
  const engine = await openEngineWithStore({ directory, clock, random: () => 0.5, retention });
  opened(engine.store.db);
  engine.workers.register("w", "workflow-graph", []);
  await define(engine);
  for (let round = 0; round < rounds; round++) {
    const workload = new Workload(engine, clock, ledger, round);
    const hash = await workload.play();
    ledger.sent(`blob ${hash}`, "gone");
    await untilPruned(engine, clock, join(directory, "blobs", "incoming"));
    ledger.answered();
    await workload.schedule();
    // The write-ahead log is folded into the data file, and begins again with the next commit.
    engine.store.db.exec("PRAGMA wal_checkpoint(RESTART)");
  }
  await engine.close();
}

/** Retention forgets a blob first, and removes its file after that. */
async function untilPruned({ store }: OpenEngine, clock: TestClock, folder: string): Promise<void> {
  const rows = store.db.prepare("SELECT count(*) AS count FROM blob");
  for (let minute = 0; rows.get()?.count !== 0 || readdirSync(folder).length > 0; minute++) {
    if (minute > MINUTES_MAX) throw new Error("The blob has not been pruned.");
    await clock.advance(PRUNING_MS);
    for (let turns = 0; turns < PRUNING_TURNS; turns++) await turn();
  }
}

async function define({ runs }: OpenEngine): Promise<void> {
  const inner = { name: "inner", steps: [step("inside")], output: null };
  const steps = [
    step("first"),
    step("second", { after: ["first"], retry: { failures: 1, backoff: { kind: "fixed", delayMs: 0 } } }),
    { id: "child", workflow: "inner", input: null, after: ["first"] },
    step("last", { after: ["second", "child"] }),
  ];
  const gate = {
    name: "gate",
    steps: [{ id: "approve", signal: "approve", input: null }, step("inside", { after: ["approve"] })],
    output: null,
  };
  const oneByOne = { name: "one-by-one", steps: [step("inside")], output: null, limit: { key: "of" } };
  const saved = { name: "saved", steps: [step("inside")], output: null, debounce: { key: "of", periodMs: DEBOUNCE_MS } };
  await runs.define({ name: "saved", dialect: "code", source: JSON.stringify(saved) });
  await runs.define({ name: "one-by-one", dialect: "code", source: JSON.stringify(oneByOne) });
  await runs.define({ name: "gate", dialect: "code", source: JSON.stringify(gate) });
  await runs.define({ name: "inner", dialect: "code", source: JSON.stringify(inner) });
  await runs.define({ name: "travel", dialect: "function", source: JSON.stringify(travel.source) });
  await runs.define({ name: "outer", dialect: "code", source: JSON.stringify({ name: "outer", steps, output: null }) });
}

class Workload {
  readonly #engine: OpenEngine;
  readonly #clock: TestClock;
  readonly #ledger: Ledger;
  readonly #round: number;

  constructor(engine: OpenEngine, clock: TestClock, ledger: Ledger, round: number) {
    this.#engine = engine;
    this.#clock = clock;
    this.#ledger = ledger;
    this.#round = round;
  }

  /** The hash of the blob that it has put. */
  async play(): Promise<string> {
    const hash = await this.#besideRuns();
    const runId = await this.#start();
    const first = await this.#take("first");
    await this.#stream(first);
    await this.#readAndFail(await this.#take("second"), first);
    for (const lane of ["second", "inside", "last"]) await this.#complete(await this.#take(lane));
    await this.#settled(runId);
    await this.#told(`run ${runId}`, "succeeded", async () => {});
    await this.#cancelAndRetry();
    await this.#orderMany();
    await this.#signal();
    await this.#turns();
    await this.#debounced();
    await this.#function();
    await this.#single();
    // The rows of every second run stay, so that later crashes find them.
    if (this.#round % 2 === 0) await this.#told(`run ${runId}`, "gone", () => this.#engine.removeRun(runId));
    return hash;
  }

  /** Sends the request, and records that the fact is true from now on. */
  async #told<T>(key: string, value: string, ask: () => Promise<T>): Promise<T> {
    this.#ledger.sent(key, value);
    const answer = await ask();
    this.#ledger.answered();
    return answer;
  }

  async #besideRuns(): Promise<string> {
    const { documents, blobs, busLog, outboxStore } = this.#engine;
    const body = JSON.stringify({ round: this.#round });
    await this.#told("document", body, () => documents.keepDocument({ kind: "sweep", name: "note", version: 1, body }));
    const content = Buffer.alloc(5_000, `blob ${this.#round} `);
    const hash = createHash("sha256").update(content).digest("hex");
    await this.#told(`blob ${hash}`, String(content.byteLength), () => blobs.put(content));
    await busLog.join(READERS.group, READERS.topics, "earliest");
    const value = Buffer.from(`record ${this.#round}`);
    await this.#told(`record ${this.#round}`, "unread", () => busLog.append([{ topic: "news", key: "k", value }]));
    const taken = await busLog.take(READERS);
    await this.#told(`record ${this.#round}`, "read", () => busLog.commit(READERS.member, taken?.id ?? -1));
    const dedupId = `mail ${this.#round}`;
    const mail = await this.#told(dedupId, "pending", () => outboxStore.add("sweep", { topic: "t", key: "k", dedupId, value: "{}" }));
    if (mail !== null) await this.#told(dedupId, "sent", () => outboxStore.settle(mail, { state: "sent" }));
    return hash;
  }

  async #start(): Promise<string> {
    const { run } = await this.#engine.runs.start({ workflow: "outer", input: "null", key: keyOf(this.#round) });
    await this.#told(`run ${run.id}`, "running", async () => {});
    await this.#told(`key ${keyOf(this.#round)}`, run.id, async () => {});
    return run.id;
  }

  async #take(...lanes: readonly string[]): Promise<TaskRow> {
    const claim = { reach: { names: [...lanes], labels: [] }, holder: "w", termMs: TERM_MS };
    for (let look = 0; look < 100; look++) {
      const [task] = await this.#engine.board.claim(claim);
      if (task !== undefined) return task;
      await turn();
    }
    throw new Error(`There is nothing on lane ${lanes.join()}.`);
  }

  /** A step that emits parts, writes lines, reports its progress, and ends. */
  async #stream(task: TaskRow): Promise<void> {
    const { parts, logStore, board } = this.#engine;
    for (const uid of ["p1", "p2"])
      await this.#told(`part ${task.id} ${uid}`, "once", () => parts.put(holdOf(task), [{ uid, value: '"x"' }]));
    for (const sequence of [1, 2]) {
      const chunks = [{ stream: "stdout" as const, sequence, data: `line ${sequence}\n`, at: 1 }];
      const batch = { taskId: task.id, runId: task.runId, attempt: task.attempt, grant: task.grant, chunks };
      await this.#told(`line ${task.id} ${sequence}`, "once", () => logStore.append(batch));
    }
    await board.extend(holdOf(task), { output: '"so far"' });
    await this.#complete(task);
  }

  /** A step that has finished with a part of its source, and fails once. */
  async #readAndFail(task: TaskRow, source: TaskRow): Promise<void> {
    await this.#told(`read ${task.id} ${source.id}`, "once", () => this.#engine.parts.finish(holdOf(task), source.id, ["p1"]));
    await this.#told(`failures ${task.id}`, "1", () => this.#engine.board.fail(holdOf(task), { error: "no", retryable: true }));
  }

  async #complete(task: TaskRow): Promise<void> {
    const output = JSON.stringify(`output of ${task.id}`);
    await this.#told(`task ${task.id}`, output, () => this.#engine.board.complete(holdOf(task), output));
  }

  async #cancelAndRetry(): Promise<void> {
    const { run } = await this.#engine.runs.start({ workflow: "inner", input: "null" });
    await this.#told(`run ${run.id}`, "cancelled", () => this.#engine.runs.cancel(run.id));
    await this.#told(`run ${run.id}`, "running", () => this.#engine.runs.retry(run.id));
    await this.#complete(await this.#take("inside"));
  }

  /** Orders to two runs at once: each is cancelled, and then retried once. */
  async #orderMany(): Promise<void> {
    const { runs } = this.#engine;
    const ids: string[] = [];
    for (let count = 0; count < 2; count++) ids.push((await runs.start({ workflow: "inner", input: "null" })).run.id);
    await this.#order("cancel", ids);
    const order = await this.#order("retry", ids);
    for (const id of ids) {
      await this.#told(`retried ${id} ${order}`, "once", async () => {});
      await this.#complete(await this.#take("inside"));
      await this.#settled(id);
      await this.#told(`run ${id}`, "succeeded", async () => {});
    }
  }

  async #order(action: BulkAction, ids: readonly string[]): Promise<string> {
    const { bulk, orderers } = this.#engine;
    const order = { action, ids, filter: null, limit: ids.length, reason: null, dry: false, perSecond: null };
    const { id } = await orderers.within({ name: "ann", via: "sweep" }, () => bulk.create(order));
    await this.#told(`audit ${id}`, "once", async () => {});
    await this.#told(`order ${id}`, "running", async () => {});
    await bulk.ended(id, new AbortController().signal);
    await this.#told(`order ${id}`, "succeeded", async () => {});
    return id;
  }

  /** A signal that is kept before its step waits, and one that ends the wait; each is sent again with its key. */
  async #signal(): Promise<void> {
    const { runs, signals } = this.#engine;
    const { run } = await runs.start({ workflow: "gate", input: "null" });
    for (const name of ["later", "approve"])
      for (const value of ['"first"', '"again"'])
        await this.#told(`signal ${run.id} ${name}`, '"first"', () => signals.send(run.id, { name, value, key: name }));
    await this.#complete(await this.#take("inside"));
    await this.#settled(run.id);
    await this.#told(`run ${run.id}`, "succeeded", async () => {});
  }

  /** Two runs, the second of which waits for the end of the first. A third is cancelled while it waits. */
  async #turns(): Promise<void> {
    const { runs } = this.#engine;
    const start = async () => {
      const { run } = await runs.start({ workflow: "one-by-one", input: JSON.stringify({ of: this.#round }) });
      await this.#told(`run ${run.id}`, "running", async () => {});
      return run.id;
    };
    const [first, cancelled, last] = [await start(), await start(), await start()];
    await this.#told(`run ${cancelled}`, "cancelled", () => runs.cancel(cancelled));
    for (const id of [first, last]) {
      await this.#complete(await this.#take("inside"));
      await this.#settled(id);
      await this.#told(`run ${id}`, "succeeded", async () => {});
    }
  }

  /** Two starts that make one run, with the input of the second. */
  async #debounced(): Promise<void> {
    const { runs } = this.#engine;
    const start = async (version: string) => {
      const input = JSON.stringify({ of: this.#round, version });
      return (await this.#told(`debounced ${this.#round}`, version, () => runs.start({ workflow: "saved", input }))).run.id;
    };
    await start("first");
    const id = await start("last");
    await this.#told(`run ${id}`, "running", () => this.#clock.advance(DEBOUNCE_MS));
    await this.#complete(await this.#take("inside"));
    await this.#settled(id);
    await this.#told(`run ${id}`, "succeeded", async () => {});
  }

  /** A durable function that waits for everything it can wait for, and continues as another. */
  async #function(): Promise<void> {
    const { runs, signals, board } = this.#engine;
    const worker = functionWorker(this.#engine);
    const turnOnce = async () => worker.perform(await this.#take(...worker.lanes));
    const { run } = await runs.start({ workflow: "travel", input: "0" });
    await this.#told(`run ${run.id}`, "running", async () => {});
    for (const pass of PASSES) {
      await turnOnce();
      await board.complete(holdOf(await this.#take("worked")), "null");
      await turnOnce();
      const name = `go-${pass}`;
      await this.#told(`signal ${run.id} ${name}`, '"first"', () => signals.send(run.id, { name, value: '"first"', key: name }));
      await turnOnce();
      await this.#clock.advance(NAP_MS);
      await turnOnce();
      await this.#complete(await this.#take("inside"));
      await turnOnce();
    }
    await this.#settled(run.id);
    await this.#told(`run ${run.id}`, "succeeded", async () => {});
    await this.#told(`output ${run.id}`, '"noted 1"', async () => {});
  }

  /** One tick at its time, a pause, two ticks of a backfill, and the end of the schedule. */
  async schedule(): Promise<void> {
    const { schedules } = this.#engine;
    const name = `each-${this.#round}`;
    const rules = { workflow: "inner", every: TICK_MS, overlap: "allow", tickField: "tick" };
    const wanted = { name, rules, input: JSON.stringify({ schedule: name }) };
    const { nextAt } = (await this.#told(`schedule ${name}`, "there", () => schedules.put(wanted))).schedule;
    const tick = nextAt ?? 0;
    await this.#told(`tick ${name} ${tick}`, "once", async () => {
      await this.#clock.advance(tick - this.#clock.now());
      await this.#complete(await this.#take("inside"));
    });
    await this.#told(`schedule ${name}`, "paused", () => schedules.pause(name, "the sweep"));
    await this.#told(`schedule ${name}`, "there", () => schedules.resume(name));
    const range = { from: tick - 2 * TICK_MS, to: tick, overlap: "allow" } as const;
    const past = [tick - 2 * TICK_MS, tick - TICK_MS];
    await schedules.backfill(name, range);
    for (const at of past) {
      await this.#told(`tick ${name} ${at}`, "once", async () => {
        await this.#clock.advance(0);
        await this.#complete(await this.#take("inside"));
      });
    }
    if (this.#round % 2 === 0) await this.#told(`schedule ${name}`, "gone", () => schedules.remove(name));
  }

  async #single(): Promise<void> {
    const id = `single-${this.#round}`;
    const limits = [{ key: id, rate: { count: 2, windowMs: RATE_MS } }];
    const task = { id, step: "single", lanes: [laneOf("single")], input: "null", policy: null, limits };
    await this.#told(`posted ${id}`, "there", () => this.#engine.board.post([task]));
    const taken = await this.#take("single");
    await this.#told(`window ${id}`, "there", async () => {});
    await this.#complete(taken);
  }

  async #settled(runId: string): Promise<void> {
    for (let look = 0; look < 100; look++) {
      if ((await this.#engine.runs.run(runId))?.state === "succeeded") return;
      await turn();
    }
    throw new Error(`Run ${runId} has not succeeded.`);
  }
}

/** A second start with the same key makes no second run. */
function keyOf(round: number): string {
  return `start ${round}`;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function holdOf(task: TaskRow): Hold {
  return { taskId: task.id, grant: task.grant, holder: task.holder ?? undefined };
}
