import { describe, expect, it } from "vitest";
import { until } from "../../../../test/support/until.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { Run } from "../../../engine/run/run.ts";
import { TestClock } from "../../../testing/clock.ts";
import { Changes } from "./changes.ts";

function setup() {
  const clock = new TestClock();
  const changes = new Changes({ clock, epoch: "e1", originOf: () => ({ workflow: "w", isHidden: false }) });
  let count = 0;
  const change = (times = 1) => {
    for (let at = 0; at < times; at++) changes.run({ id: `r${++count}`, workflow: "w", state: "running", error: null } as Run);
  };
  const seen = (number: number) => changes.after(number).changes.map(({ change: { id } }) => id);
  return { clock, changes, change, seen };
}

describe("changes", () => {
  it("are not noted without a reader", () => {
    const { changes, change, seen } = setup();
    change(3);
    expect([changes.now, seen(0)]).toEqual([0, []]);
  });

  it("are read from a place on, in order and in bounded parts", () => {
    const { changes, change, seen } = setup();
    changes.read(() => {});
    change(3);
    expect(seen(0)).toEqual(["r1", "r2", "r3"]);
    expect(seen(2)).toEqual(["r3"]);
    expect(seen(3)).toEqual([]);
    change(2_000);
    expect(changes.after(0).changes).toHaveLength(500);
  });

  it("have the head and the tail of an error that is megabytes long", () => {
    const { changes } = setup();
    changes.read(() => {});
    const error = `first ${"x".repeat(5_000_000)} last`;
    changes.run({ id: "r", workflow: "w", state: "failed", error } as Run);
    changes.task({ id: "t", runId: "r", step: "s", state: "failed", attempt: 0, error } as TaskRow);
    for (const { change } of changes.after(0).changes) {
      expect(change.error?.length).toBeLessThanOrEqual(2_000);
      expect([change.error?.startsWith("first "), change.error?.endsWith(" last")]).toEqual([true, true]);
    }
  });

  it("that were overwritten are counted as missed", () => {
    const { changes, change } = setup();
    changes.read(() => {});
    change(10_000);
    const look = changes.after(0);
    expect(look.missed).toBe(10_000 - 8_192);
    expect(look.changes[0]).toMatchObject({ number: look.missed + 1, change: { id: `r${look.missed + 1}` } });
    expect(changes.after(changes.now - 1)).toMatchObject({ missed: 0, changes: [{ change: { id: "r10000" } }] });
  });

  it("wake each reader once for all changes that arrived together", async () => {
    const { changes, change } = setup();
    let wakes = 0;
    const leave = changes.read(() => wakes++);
    change(5);
    await until(() => wakes > 0);
    expect(wakes).toBe(1);
    leave();
    leave();
    expect(changes.readers).toBe(0);
  });

  it("are noted for a minute after the last reader left, and then forgotten", async () => {
    const { clock, changes, change, seen } = setup();
    changes.read(() => {})();
    await clock.advance(59_000);
    change();
    expect(seen(0)).toEqual(["r1"]);
    await clock.advance(1_000);
    change();
    expect(changes.after(1)).toMatchObject({ missed: 1, changes: [] });
    changes.read(() => {});
    change();
    expect(changes.after(1)).toMatchObject({ missed: 1, changes: [{ change: { id: "r3" } }] });
    expect(seen(changes.now - 1)).toEqual(["r3"]);
  });

  it("have ids that only this process takes", () => {
    const { changes, change } = setup();
    changes.read(() => {});
    change(2);
    expect(changes.numberOf(changes.idOf(2))).toBe(2);
    for (const id of ["e2-1", "e1-3", "e1-", "e1", "", "e1-x", "1"]) expect(changes.numberOf(id)).toBeUndefined();
  });
});
