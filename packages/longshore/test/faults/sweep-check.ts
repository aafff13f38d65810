// After a crash: opens the remaining data, compares it with what was acknowledged, lets everything end, and compares once more.
import { createHash } from "node:crypto";
import { isDriver } from "../../src/engine/board/task.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type OpenEngine, openEngineWithStore } from "../support/engine.ts";
import { functionWorker } from "./sweep-function.ts";
import { LANES, READERS, TERM_MS, tickInput } from "./sweep-workload.ts";

/** What was acknowledged before the crash, and what was uncertain. */
export interface Known {
  readonly facts: ReadonlyMap<string, string>;
  readonly doubt: { key: string; value: string } | null;
}

export interface Findings {
  lost: string[];
  duplicated: string[];
}

/** Rounds of work after which everything must have ended: the longest chain of steps, and one more for each hold that has to lapse. */
const ROUNDS_MAX = 60;

export async function checkAfterCrash(folder: string, known: Known): Promise<Findings> {
  const clock = new TestClock();
  const engine = await openEngineWithStore({ directory: folder, clock, random: () => 0.5 });
  try {
    const found: Findings = { lost: [], duplicated: [] };
    await compare(engine, known, found, false);
    await rerunFields(engine, known, found);
    await finish(engine, clock, known, found);
    await compare(engine, known, found, true);
    await ticksOnce(engine, clock, known, found);
    return found;
  } finally {
    await engine.close();
  }
}

async function compare(engine: OpenEngine, { facts, doubt }: Known, found: Findings, ended: boolean): Promise<void> {
  const gone = [...facts, ...(doubt === null ? [] : [[doubt.key, doubt.value] as const])].filter(([, value]) => value === "gone");
  // With a run, all that belongs to it is removed; a blob is removed alone.
  const removed = gone.filter(([key]) => key.startsWith("run ")).map(([key]) => key.slice("run ".length));
  for (const [key, value] of facts) {
    if (key.startsWith("key ") || (value !== "gone" && removed.some((id) => key.includes(id)))) continue;
    const is = await observe(engine, key);
    const may = doubt?.key === key ? [value, doubt.value] : [value];
    // Running work ends during the check.
    const allowed = may.includes("running") ? [...may, "succeeded"] : may;
    if (is === "twice") found.duplicated.push(key);
    else if (!allowed.includes(is)) found.lost.push(`${key} was ${value} and is ${is}${ended ? " in the end" : ""}`);
  }
  const together = engine.store.db.prepare(
    "SELECT gate FROM run WHERE ended_at IS NULL AND turn IS NULL AND gate IS NOT NULL GROUP BY gate HAVING count(*) > 1",
  );
  const left = engine.store.db.prepare(
    "SELECT name FROM gate WHERE name LIKE 'debounce %' AND json_extract(state, '$.open[0]') NOT IN (SELECT id FROM run WHERE start_at IS NOT NULL)",
  );
  for (const { name } of left.all()) found.lost.push(`${String(name)} has no run that waits for further starts`);
  for (const { gate } of together.all()) found.duplicated.push(`two runs of ${String(gate)} are open`);
  if (doubt !== null && !facts.has(doubt.key) && (await observe(engine, doubt.key)) === "twice") found.duplicated.push(doubt.key);
}

/** What is true of a fact's subject now. */
async function observe(engine: OpenEngine, key: string): Promise<string> {
  const [about = "", id = "", which = ""] = key.split(" ");
  const { db } = engine.store;
  const task = async () => engine.board.task(id);
  if (about === "run") return (await engine.runs.run(id))?.state ?? "gone";
  if (about === "task") return (await task())?.state === "done" ? ((await task())?.output ?? "nothing") : "not done";
  if (about === "failures") return String((await task())?.failures);
  if (about === "output") return (await engine.runs.run(id))?.output ?? "gone";
  if (about === "posted") return (await task()) === undefined ? "gone" : "there";
  if (about === "part") return times((await engine.parts.read(id, 0, 100)).parts.filter(({ uid }) => uid === which).length);
  if (about === "read") return (await engine.parts.unread(id, which, 0, 10)).parts.some(({ uid }) => uid === "p1") ? "gone" : "once";
  if (about === "order") return order(engine, id);
  if (about === "retried") return retried(engine, id, which);
  if (about === "audit") return times((await engine.audit.page({ kind: "bulk", target: id, limit: 10 })).items.length);
  if (about === "window") return db.prepare("SELECT 1 FROM hand_out WHERE key = ?").get(id) === undefined ? "gone" : "there";
  if (about === "line")
    return times((await engine.logStore.read(id, { limit: 100 })).filter(({ sequence }) => sequence === Number(which)).length);
  if (about === "document") return (await engine.documents.document("sweep", "note"))?.body ?? "gone";
  if (about === "blob") return blob(engine, id);
  if (about === "signal") return signal(engine, id, which);
  if (about === "schedule") return schedule(engine, id);
  if (about === "tick") return times(runsOf(engine, id, Number(which)));
  if (about === "debounced") return debounced(engine, Number(id));
  if (about === "record") return record(engine, key);
  const mails = db.prepare("SELECT state FROM outbox WHERE dedup_id = ?").all(key);
  return mails.length > 1 ? "twice" : String(mails[0]?.state);
}

function times(count: number): string {
  return count === 0 ? "gone" : count === 1 ? "once" : "twice";
}

/** How far an order to many runs has come. */
async function order({ bulk }: OpenEngine, id: string): Promise<string> {
  const job = await bulk.job(id);
  return job === undefined ? "gone" : job.state === "done" ? "succeeded" : job.state;
}

/** A run gets an order once, and has got it when the order has ended. */
async function retried(engine: OpenEngine, runId: string, orderId: string): Promise<string> {
  const count = (await engine.runs.run(runId))?.retries ?? 0;
  return count === 0 && (await order(engine, orderId)) === "running" ? "once" : times(count);
}

async function blob({ blobs }: OpenEngine, hash: string): Promise<string> {
  const stored = await blobs.get(hash);
  if (stored === undefined) return "gone";
  const pieces: Buffer[] = [];
  for await (const piece of stored.content) pieces.push(piece as Buffer);
  const content = Buffer.concat(pieces);
  return createHash("sha256").update(content).digest("hex") === hash ? String(content.byteLength) : "damaged";
}

async function signal({ signals }: OpenEngine, runId: string, name: string): Promise<string> {
  const { items } = await signals.list(runId, { limit: 100 });
  const same = items.filter((one) => one.name === name);
  const [one] = same;
  if (one === undefined || same.length > 1) return times(same.length);
  return one.value ?? (one.taskId === null ? "lost" : '"first"');
}

async function schedule({ schedules }: OpenEngine, name: string): Promise<string> {
  const found = await schedules.get(name);
  if (found === undefined) return "gone";
  return found.paused === null ? "there" : "paused";
}

/** How many runs a tick has. */
function runsOf({ store }: OpenEngine, name: string, tick: number): number {
  return Number(store.db.prepare("SELECT count(*) AS count FROM run WHERE input = ?").get(tickInput(name, tick))?.count);
}

/** The version of the input of the one run that starts which came together have made. */
function debounced({ store }: OpenEngine, round: number): string {
  const runs = store.db.prepare("SELECT input FROM run WHERE workflow = 'saved' AND json_extract(input, '$.of') = ?").all(round);
  if (runs.length !== 1) return times(runs.length);
  return (JSON.parse(String(runs[0]?.input)) as { version: string }).version;
}

/** When the time of a tick comes after the crash, it has one run, whether it had one before or not. */
async function ticksOnce(engine: OpenEngine, clock: TestClock, { facts, doubt }: Known, found: Findings): Promise<void> {
  for (const key of [...facts.keys(), ...(doubt === null ? [] : [doubt.key])]) {
    const [about, name = "", at] = key.split(" ");
    if (about !== "tick" || (await schedule(engine, name)) !== "there") continue;
    await clock.advance(Math.max(0, Number(at) + 1_000 - clock.now()));
    for (let turn = 0; turn < 5; turn++) await clock.advance(0);
    const runs = runsOf(engine, name, Number(at));
    if (runs !== 1) (runs === 0 ? found.lost : found.duplicated).push(`${key} has ${runs} runs in the end`);
  }
}

/** A record that is not handed out to its group must have been read. Otherwise it is lost, because it was appended. */
async function record({ busLog }: OpenEngine, key: string): Promise<string> {
  const taken = await busLog.take(READERS);
  if (taken === null) return "read";
  busLog.release(READERS.member, taken.id);
  const same = taken.records.filter(({ value }) => Buffer.from(value).toString() === key).length;
  return same === 0 ? "read" : same === 1 ? "unread" : "twice";
}

/** Clients without a response repeat their request, and an acknowledged change is not made twice. */
async function rerunFields(engine: OpenEngine, { facts, doubt }: Known, found: Findings): Promise<void> {
  for (const [key, id] of facts) {
    if (!key.startsWith("key ") || facts.get(`run ${id}`) === "gone" || doubt?.key === `run ${id}`) continue;
    const { run, created } = await engine.runs.start({ workflow: "outer", input: "null", key: key.slice("key ".length) });
    if (created || run.id !== id) found.duplicated.push(key);
  }
}

/** Does all remaining work. A task whose completion was acknowledged must not be handed out again. */
async function finish(engine: OpenEngine, clock: TestClock, { facts }: Known, found: Findings): Promise<void> {
  const { db } = engine.store;
  const worker = functionWorker(engine);
  const open = db.prepare(
    "SELECT (SELECT count(*) FROM run WHERE ended_at IS NULL) + (SELECT count(*) FROM task WHERE ended_at IS NULL) + (SELECT count(*) FROM message) + (SELECT count(*) FROM bulk WHERE ended_at IS NULL) AS count",
  );
  // The workload may have been hours ahead: a run that waits for further starts begins.
  const begins = Number(db.prepare("SELECT max(start_at) AS at FROM run WHERE ended_at IS NULL").get()?.at ?? 0);
  await clock.advance(Math.max(0, begins - clock.now()));
  for (let round = 0; Number(open.get()?.count) > 0; round++) {
    if (round > ROUNDS_MAX) {
      found.lost.push(`${open.get()?.count} rows are open and nothing moves them`);
      return;
    }
    const names = [...LANES, ...worker.lanes];
    const tasks = await engine.board.claim({ reach: { names, labels: [] }, holder: "heir", termMs: TERM_MS, max: 100 });
    for (const task of tasks) {
      if (isDriver(task)) {
        await worker.perform(task);
        continue;
      }
      if (facts.has(`task ${task.id}`)) found.duplicated.push(`task ${task.id} was handed out again`);
      await engine.board.complete({ taskId: task.id, grant: task.grant, holder: "heir" }, '"late"');
    }
    // A step that waits for a signal gets it from a client that got no answer.
    for (const { run_id, signal: name } of db
      .prepare("SELECT run_id, signal FROM task WHERE ended_at IS NULL AND signal IS NOT NULL")
      .all())
      await engine.signals.send(String(run_id), { name: String(name), value: '"first"', key: String(name) });
    // Holds of the process that died expire.
    await clock.advance(tasks.length === 0 ? TERM_MS : 0);
    for (let turn = 0; turn < 5; turn++) await clock.advance(0);
  }
}
