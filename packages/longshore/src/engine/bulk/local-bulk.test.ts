import { expect, it, onTestFinished } from "vitest";
import { Orderers } from "../../core/orderer.ts";
import { openDatabase } from "../../store/sqlite/driver.ts";
import { sqliteRows } from "../../store/sqlite/row-store.ts";
import { migrate } from "../../store/sqlite/schema.ts";
import { TestClock } from "../../testing/clock.ts";
import type { AuditEntry } from "../audit/audit.ts";
import { GroupCommit } from "../commit.ts";
import type { Run } from "../run/run.ts";
import { LocalBulk, type LocalBulkDeps } from "./local-bulk.ts";

/** Processes on the same data. Each hangs, as if it had crashed, when `crashAt` orders have been given. */
async function open() {
  const db = await openDatabase(":memory:", { synchronous: "NORMAL" });
  onTestFinished(() => db.close());
  migrate(db);
  const clock = new TestClock();
  const store = sqliteRows(db, () => null);
  const orderers = new Orderers();
  const given: string[] = [];
  const audited: Pick<AuditEntry, "target" | "via">[] = [];
  const process = (crashAt: number) => {
    const commit = new GroupCommit(store, () => clock.now());
    const tell = (run: string, order: { node?: number }) => {
      if (given.length === crashAt) return new Promise<never>(() => {});
      given.push(`${run} ${order.node}`);
      audited.push({ target: run, via: orderers.current()?.via ?? "" });
      return Promise.resolve();
    };
    const deps = {
      ...{ store, commit, clock, orderers, makeId: () => "job" },
      runs: { run: () => Promise.resolve({ state: "failed" } as Run), tell },
      nodeOf: (_run: string, step: string) => Promise.resolve(Number(step)),
      audit: { note: () => {} },
      auditReader: { page: ({ target }: { target: string }) => Promise.resolve({ items: audited.filter((one) => one.target === target) }) },
    };
    return new LocalBulk(deps as unknown as LocalBulkDeps);
  };
  return { given, process };
}

it("begins again at each step of a run once, also when the process crashes between two of them", async () => {
  const { given, process } = await open();
  const order = { action: "rerun-from", ids: ["r", "r"], steps: ["1", "2"], filter: null, limit: 10, reason: null, dry: false } as const;
  await process(1).create({ ...order, perSecond: null });
  await expect.poll(() => given).toEqual(["r 1"]);
  const next = process(Number.POSITIVE_INFINITY);
  await next.recover();
  await next.ended("job", new AbortController().signal);
  expect(given).toEqual(["r 1", "r 2"]);
  expect(await next.job("job")).toMatchObject({ state: "done", done: 2 });
});
