import { describe, expect, it } from "vitest";
import { openParts, type Parts } from "../../test/support/parts.ts";
import { type Quotas, storedKinds } from "../core/quotas.ts";
import { BlobFiles } from "../store/sqlite/blob-files.ts";
import { countAmounts } from "../store/sqlite/schema.ts";
import { LocalBlobs } from "./blob/local-blobs.ts";
import { BlobReferences } from "./blob/references.ts";
import { LocalBus } from "./bus/local-bus.ts";
import { LocalLogs } from "./log/local-logs.ts";
import { LocalParts } from "./part/local-parts.ts";
import { LocalDocuments } from "./run/local-documents.ts";
import { LocalRetention } from "./run/local-retention.ts";
import { retentionPolicy } from "./run/retention.ts";

const dayMs = 86_400_000;

async function setup(before?: Parts, quotas: Partial<Quotas> = {}) {
  const parts = await openParts("a file", before, quotas);
  const blobs = new LocalBlobs({ ...parts, contents: new BlobFiles(`${parts.folder}/blobs`) });
  const rowsOf = { runs: parts.runs.runs, tasks: parts.board.tasks };
  const streams = new LocalParts({ ...parts, ...rowsOf, first: () => false });
  const { definitions, signals } = parts.runs;
  const references = new BlobReferences({ ...parts, ...rowsOf, definitions, signals, parts: streams, blobs });
  const retention = new LocalRetention({ ...parts, ...rowsOf, blobs, references });
  const documents = new LocalDocuments(parts);
  const logs = new LocalLogs(parts);
  const bus = new LocalBus(parts);
  await bus.recover();
  const post = async (id: string, policy: string | null = null) => {
    await parts.board.post([{ id, step: "alone", lanes: [{ name: "work", labels: [] }], input: "null", policy }]);
    return parts.claim();
  };
  const log = (taskId: string, data: string, sequence = 0) =>
    logs.append({ taskId, runId: null, attempt: 0, grant: 1, chunks: [{ stream: "stdout", sequence, data, at: 0 }] });
  const document = (name: string, body: string, kind = "k") => documents.keepDocument({ kind, name, version: 1, body });
  return { parts, blobs, streams, retention, documents, document, logs, log, bus, post };
}

/** The sizes in the data file, and what its tables hold. Places of tasks are no size: they are reserved many at once. */
function sums({ db, stored }: Parts) {
  const read = () =>
    Object.fromEntries(
      db
        .prepare("SELECT name, value FROM amount WHERE value <> 0 AND name <> 'places'")
        .all()
        .map((row) => [row.name, row.value]),
    );
  const kept = read();
  db.exec(`BEGIN; ${countAmounts}`);
  const counted = read();
  db.exec("ROLLBACK");
  const memory = Object.fromEntries(storedKinds.map((kind) => [`bytes of ${kind}`, stored.of(kind).used]).filter(([, used]) => used !== 0));
  return { kept, counted, memory };
}

function expectTrue(parts: Parts): void {
  const { kept, counted, memory } = sums(parts);
  expect(kept).toEqual(counted);
  expect(counted).toMatchObject(memory);
}

const again = JSON.stringify({ failures: 5, lost: 5, backoff: { kind: "fixed", delayMs: 0 } });

describe("stored bytes", () => {
  it("are what the tables hold after rows were added, replaced and removed, also after a restart", async () => {
    const world = await setup();
    const { parts, streams, document, documents, bus, log, blobs, post } = world;
    await blobs.put(Buffer.from("some content"), { note: "a note" });
    await blobs.put(Buffer.from("some content"), { note: "a longer note, ü" });
    await blobs.put(Buffer.from("some content"));
    await document("a", '"long text"');
    await document("b", '"ü"');
    await document("a", "1");
    await documents.removeDocument("k", "b");
    const task = await post("T1", again);
    const hold = { taskId: "T1", grant: task.grant };
    const part = (uid: string, value: string) => ({ uid, value });
    await streams.put(hold, [part("p0", '"0"'), part("p1", '"one"'), part("p1", '"twice"')]);
    await log("T1", "a line of the log\n");
    await parts.board.settle({ verb: "fail", hold, error: "it broke with an ö", retryable: true });
    const later = await parts.claim();
    // The same parts by the next attempt: one replaced by a longer one, one new.
    await streams.put({ taskId: "T1", grant: later.grant }, [part("p0", '"a longer value"'), part("p2", '"2"')]);
    await bus.append([{ topic: "t", key: "key", value: "a record" }]);
    await bus.append([{ topic: "t", key: null, value: "another" }]);
    expectTrue(parts);
    await bus.join("g", ["t"], "earliest");
    const taken = await bus.take({ group: "g", member: "m", topics: ["t"], max: 1 });
    await bus.commit("m", taken?.id as number);
    expectTrue(parts);
    expect(Object.keys(sums(parts).kept).sort()).toEqual(
      [...storedKinds.map((kind) => `bytes of ${kind}`), "documents of k", "last log"].sort(),
    );
    await parts.complete(later);
    await parts.close();
    const reopened = await setup(parts);
    expectTrue(reopened.parts);
    reopened.parts.clock.jump(2 * dayMs);
    const short = { ageMs: dayMs, count: 10 };
    await reopened.retention.prune(retentionPolicy({ tasks: short, blobs: short, logs: short, runs: short }), reopened.parts.clock.now());
    expectTrue(reopened.parts);
    expect(Object.keys(sums(reopened.parts).kept).sort()).toEqual(["bytes of bus", "bytes of documents", "documents of k", "last log"]);
  });

  it("stay as they were when a write fails", async () => {
    const { parts, document, bus, streams, post } = await setup();
    const task = await post("T1");
    parts.db.exec("CREATE TRIGGER refuse BEFORE INSERT ON document WHEN NEW.name = 'bad' BEGIN SELECT raise(ABORT, 'refused'); END");
    const put = streams.put({ taskId: "T1", grant: task.grant }, [{ uid: "p", value: "1" }]);
    const results = await Promise.allSettled([
      document("good", "1"),
      document("bad", "2"),
      bus.append([{ topic: "t", key: null, value: "v" }]),
      put,
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expectTrue(parts);
  });

  it("a refusal names the quota and the flag, and leaves room for what is smaller", async () => {
    const { parts, document, documents } = await setup(undefined, { documentBytes: 300 });
    expect(await document("a", "x".repeat(200))).toBe(true);
    await expect(document("b", "x".repeat(200))).rejects.toMatchObject({
      code: "LONGSHORE_LIMIT",
      message: expect.stringMatching(/all documents together may have 300 bytes\..* raise --document-bytes \(quotas\.documentBytes\)\./),
      detail: { field: "quotas.documentBytes", expected: "at most 300 bytes" },
    });
    await expect(document("a", "x".repeat(290))).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    // A document that the server itself needs is kept nevertheless.
    expect(await documents.keepDocument({ kind: "own", name: "b", version: 1, body: "x".repeat(200) }, { own: true })).toBe(true);
    await documents.removeDocument("own", "b");
    expect(await document("a", "x".repeat(10))).toBe(true);
    expect(await document("b", "x".repeat(90))).toBe(true);
    await documents.removeDocument("k", "a");
    expect(await document("c", "x".repeat(10))).toBe(true);
    expect(parts.stored.of("documents").refused).toBe(2);
    expectTrue(parts);
  });

  it("logs beyond the quota are dropped and counted, and are taken again when there is room", async () => {
    const { parts, log } = await setup(undefined, { logBytes: 1_000 });
    expect(await log("T1", "x".repeat(800))).toMatchObject({ stored: 1, dropped: 0 });
    expect(await log("T2", "x".repeat(800))).toMatchObject({ stored: 0, dropped: 1 });
    expect(await log("T2", "x", 1)).toMatchObject({ stored: 1, dropped: 0 });
    expect(parts.stored.of("logs").refused).toBe(1);
    expectTrue(parts);
  });

  it("an attempt beyond the quota is kept without its texts, because its end cannot be refused", async () => {
    const { parts, post } = await setup(undefined, { attemptBytes: 300 });
    let task = await post("T1", again);
    for (const error of ["e".repeat(100), "f".repeat(200)]) {
      await parts.board.settle({ verb: "fail", hold: { taskId: "T1", grant: task.grant }, error, retryable: true });
      task = await parts.claim();
    }
    const kept = parts.db.prepare("SELECT error FROM attempt ORDER BY attempt").all();
    expect(kept.map(({ error }) => error)).toEqual(["e".repeat(100), null]);
    expect(parts.stored.of("attempts").refused).toBe(1);
    expectTrue(parts);
  });
});
