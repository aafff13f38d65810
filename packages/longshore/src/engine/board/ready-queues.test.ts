import { expect, it } from "vitest";
import { openParts } from "../../../test/support/parts.ts";
import type { Rows } from "../cached-rows.ts";
import type { Tx } from "../tx.ts";
import type { HandOuts } from "./hand-outs.ts";
import { Lanes, laneOf } from "./lanes.ts";
import { Limits } from "./limits.ts";
import { newTask } from "./new-task.ts";
import { ReadyQueues } from "./ready-queues.ts";
import type { TaskRow } from "./task.ts";

/** Ready queues over rows in a map; `asked` counts the reads. */
function setup() {
  const rows = new Map<string, TaskRow>();
  const asked = { count: 0 };
  const tasks = {
    get: (_tx: Tx, id: string) => {
      asked.count++;
      return rows.get(id) ?? null;
    },
    put: (_tx: Tx, id: string, task: TaskRow) => rows.set(id, task),
  } as unknown as Rows<TaskRow>;
  const tx: Tx = {
    isOperation: true,
    orderer: undefined,
    loaded: new Map(),
    undo() {},
    after() {},
    spend() {},
    isSpent: false,
    weigh() {},
  };
  const lanes = new Lanes();
  const handOuts = { add() {} } as unknown as HandOuts;
  const options = { grantsFrom: 0, tasks, lanes, limits: new Limits(), handOuts, deadline() {}, handedOut() {}, giveBack: async () => {} };
  return { tx, lines: new ReadyQueues(options), lanes, rows, asked };
}

it("the end of a hold costs the same for any number of waiting tasks of its limit", () => {
  const { tx, lines, lanes, rows, asked } = setup();
  const limits = [{ key: "run", held: 10 }];
  const lane = laneOf("work");
  for (let at = 0; at < 10_000; at++) {
    const fresh = newTask({ id: `t${at}`, step: "s", lanes: [lane], input: "null", policy: null, limits }, 0, lane);
    const task = { ...fresh, sequence: at };
    rows.set(task.id, task);
    lines.join(tx, task, 0);
  }
  const group = lanes.group({ names: ["work"], labels: [] }, 0);
  let looks = 0;
  const take = (): TaskRow | null => {
    asked.count = 0;
    const task = lines.take(tx, group, 0);
    expect(asked.count).toBeLessThanOrEqual(500);
    looks++;
    if (task === "more") return take();
    return task === null ? null : lines.handOut(tx, task, { holder: "ann", termMs: 0, now: 0 });
  };
  const held = Array.from({ length: 10 }, take) as TaskRow[];
  // Tasks that wait for room are parked, a limited number of them in each call of `take`.
  looks = 0;
  expect(take()).toBeNull();
  expect(looks).toBe(20);
  const order: string[] = [];
  const costs = new Set<number>();
  for (let at = 10; at < 10_000; at++) {
    const ended = held.shift() as TaskRow;
    rows.set(ended.id, { ...ended, state: "done" });
    asked.count = 0;
    lines.leave(tx, ended, 0);
    const woken = asked.count;
    const next = take() as TaskRow;
    order.push(next.id);
    held.push(next);
    costs.add(woken + asked.count);
    expect(take()).toBeNull();
  }
  expect([...costs]).toEqual([2]);
  expect(order).toEqual(Array.from({ length: 9_990 }, (_, at) => `t${at + 10}`));
});

it("claims from a backlog that memory does not have load the rows of the next tasks together", async () => {
  const lane = laneOf("work");
  const tasks = Array.from({ length: 200 }, (_, at) => ({ id: `t${at}`, step: "s", lanes: [lane], input: "null", policy: null }));
  const before = await openParts("rows that are read later");
  await before.board.post(tasks);
  await before.close();
  const { store, board } = await openParts("rows that are read later", before);
  const loaded: number[] = [];
  const { load } = store;
  store.load = (tx, missing) => {
    loaded.push(new Set(missing.map(({ read }) => (read as { key: string }).key)).size);
    return load(tx, missing);
  };
  const claim = (max: number) => board.claim({ reach: { names: ["work"], labels: [] }, holder: "ann", termMs: 1_000, max });
  const claimed = await Promise.all(Array.from({ length: 100 }, () => claim(1)));
  expect(claimed.map(({ tasks: [task] }) => task?.id)).toEqual(tasks.slice(0, 100).map(({ id }) => id));
  // Without this, each load would have one row.
  expect(loaded.length).toBeLessThan(10);
  loaded.length = 0;
  expect((await claim(50)).tasks).toHaveLength(50);
  expect(loaded).toEqual([50]);
  loaded.length = 0;
  expect((await claim(1)).tasks).toHaveLength(1);
  expect(loaded).toEqual([1]);
});
