import { expect, it, onTestFinished } from "vitest";
import { openDatabase } from "../../store/sqlite/driver.ts";
import { sqliteRows } from "../../store/sqlite/row-store.ts";
import { migrate } from "../../store/sqlite/schema.ts";
import { TestClock } from "../../testing/clock.ts";
import { GroupCommit } from "../commit.ts";
import { Postponed } from "../commit-errors.ts";
import { Definitions } from "./definitions.ts";
import { makePlan } from "./make-plan.ts";
import { atOnceCharsMax, type Plan } from "./plan.ts";

const committed = { isOperation: false, loaded: new Map() };
const plan = makePlan({ dialect: "d", nodes: [], output: null });
const small = { id: "small", name: "small", dialect: "d", source: "{}" };
const large = { id: "large", name: "large", dialect: "d", source: " ".repeat(atOnceCharsMax + 1) };

/** A store of definitions whose large plans are ready when `made` is resolved. */
async function open() {
  const db = await openDatabase(":memory:", { synchronous: "NORMAL" });
  onTestFinished(() => db.close());
  migrate(db);
  const clock = new TestClock();
  const rows = sqliteRows(db, () => null);
  const commit = new GroupCommit(rows, () => clock.now());
  const calls: string[] = [];
  const made = withResolvers<Plan>();
  const definitions = new Definitions(rows, commit, clock, {
    plan: ({ id }) => {
      calls.push(`at once ${id}`);
      return plan;
    },
    planInTurns: ({ id }) => {
      calls.push(`in turns ${id}`);
      return made.promise;
    },
    decide: () => {
      throw new Error("Nothing is decided here.");
    },
  });
  for (const one of [small, large]) await commit.run((tx) => definitions.keep(tx, one));
  return {
    commit,
    db,
    definitions,
    calls,
    made,
    planOf: (id: string) => commit.run((tx) => definitions.plan(tx, definitions.byId(tx, id)!)),
  };
}

it("an operation that needs the plan of a large definition waits for it, and no other does", async () => {
  const { planOf, calls, made } = await open();
  let waits = true;
  const waiting = [planOf("large"), planOf("large")].map((one) => one.finally(() => (waits = false)));
  expect(await planOf("small")).toBe(plan);
  expect(waits).toBe(true);
  made.resolve(plan);
  expect(await Promise.all(waiting)).toEqual([plan, plan]);
  expect(await planOf("large")).toBe(plan);
  expect(calls.sort()).toEqual(["at once small", "in turns large"]);
});

it("the plan of a definition that has grown is compiled in turns, however short its source is", async () => {
  const { commit, definitions, planOf, calls, made } = await open();
  const id = "small+grown-0";
  await commit.run((tx) => definitions.keep(tx, { ...small, id, name: `.${id}` }));
  made.resolve(plan);
  expect(await planOf(id)).toBe(plan);
  expect(calls).toEqual([`in turns ${id}`]);
});

it("a definition that was removed with its run is stored again when it is needed again", async () => {
  const { commit, db, definitions } = await open();
  const count = () => db.prepare("SELECT count(*) AS rows FROM definition WHERE id = 'small'").get()?.rows;
  db.exec("DELETE FROM definition WHERE id = 'small'");
  expect(count()).toBe(0);
  await commit.run((tx) => definitions.keep(tx, small));
  await commit.run((tx) => definitions.keep(tx, small));
  expect(count()).toBe(1);
});

it("a caller gets a large definition when its plan is ready", async () => {
  const { definitions, calls, made } = await open();
  const found = definitions.withPlan(definitions.byId(committed, "large")!);
  made.resolve(plan);
  expect(definitions.planNow((await found)!)).toBe(plan);
  expect(calls).toEqual(["in turns large"]);
});

it("an operation fails when the plan that it waits for cannot be made", async () => {
  const { planOf, made } = await open();
  const failing = expect(planOf("large")).rejects.toThrow("no plan");
  await planOf("small");
  made.reject(new Error("no plan"));
  await failing;
});

it("what an operation has changed before it is postponed is taken back", async () => {
  const { commit, definitions } = await open();
  const ready = withResolvers<void>();
  let tries = 0;
  const kept = commit.run((tx) => {
    definitions.keep(tx, { ...small, id: `try-${++tries}`, name: "again" });
    if (tries === 1) throw new Postponed(ready.promise);
  });
  await commit.run(() => {});
  expect(await commit.run((tx) => definitions.newest(tx, "again"))).toBeNull();
  ready.resolve();
  await kept;
  expect(definitions.newest(committed, "again")).toMatchObject({ id: "try-2", version: 1 });
});

it("a store that is closed refuses what was postponed", async () => {
  const { commit, planOf, made } = await open();
  const waiting = planOf("large");
  await commit.run(() => {});
  await commit.close();
  made.resolve(plan);
  await expect(waiting).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
});

function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
