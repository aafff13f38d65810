import { describe, expect, it } from "vitest";
import { Results, whenAborted } from "./results.ts";

type Thing = { open: boolean; name: string };

const isOpen = (thing: Thing) => thing.open;
const ended: Thing = { open: false, name: "ended" };

describe("results", () => {
  it("are returned at once when the work has ended already, and no waiter is kept", async () => {
    const results = new Results<Thing>();
    expect(await results.of("a", async () => ended, isOpen)).toBe(ended);
    expect(results.size).toBe(0);
  });

  it("are undefined when the id does not exist", async () => {
    const results = new Results<Thing>();
    expect(await results.of("a", async () => undefined, isOpen)).toBeUndefined();
    expect(results.size).toBe(0);
  });

  it("notify all waiters for the id, and no others", async () => {
    const results = new Results<Thing>();
    const open = async () => ({ open: true, name: "running" });
    const first = results.of("a", open, isOpen);
    const second = results.of("a", open, isOpen);
    const other = results.of("b", open, isOpen);
    results.tell("a", ended);
    expect(await Promise.all([first, second])).toEqual([ended, ended]);
    expect(results.size).toBe(1);
    results.tell("b", { open: false, name: "other" });
    expect((await other)?.name).toBe("other");
  });

  it("are not missed when the work ends during the read", async () => {
    const results = new Results<Thing>();
    const look = async () => {
      results.tell("a", ended);
      return { open: true, name: "as it was before" };
    };
    expect(await results.of("a", look, isOpen)).toBe(ended);
  });

  it("are no longer waited for when the read fails", async () => {
    const results = new Results<Thing>();
    const look = async () => {
      throw new Error("the store is closed");
    };
    await expect(results.of("a", look, isOpen)).rejects.toThrow("the store is closed");
    expect(results.size).toBe(0);
  });

  it("are the current state for a caller that gives up", async () => {
    const results = new Results<Thing>();
    const patience = new AbortController();
    let name = "at first";
    const waiting = results.of("a", async () => ({ open: true, name }), isOpen, whenAborted(patience.signal));
    const other = results.of("a", async () => ({ open: true, name }), isOpen, whenAborted(new AbortController().signal));
    await Promise.resolve();
    name = "by now";
    patience.abort();
    expect((await waiting)?.name).toBe("by now");
    results.tell("a", ended);
    expect(await other).toBe(ended);
    expect(results.size).toBe(0);
  });

  it("are the current state for a caller that does not wait, and an error for a waiter when the server closes", async () => {
    const results = new Results<Thing>();
    const open = async () => ({ open: true, name: "running" });
    expect((await results.of("a", open, isOpen, whenAborted(AbortSignal.abort())))?.name).toBe("running");
    expect(results.size).toBe(0);
    const waiting = results.of("a", open, isOpen, whenAborted(new AbortController().signal));
    results.close(new Error("closed"));
    await expect(waiting).rejects.toThrow("closed");
  });

  it("of other waiters are not affected when one waiter fails", async () => {
    const results = new Results<Thing>();
    const { ended: failing, fail } = results.expect("a");
    const { ended: waiting } = results.expect("a");
    fail(new Error("not posted"));
    fail(new Error("twice"));
    results.tell("a", ended);
    expect(await waiting).toBe(ended);
    await expect(failing).rejects.toThrow("not posted");
  });

  it("are reported to all waiters when the server closes", async () => {
    const results = new Results<Thing>();
    const open = async () => ({ open: true, name: "running" });
    const waiting = [results.of("a", open, isOpen), results.expect("b").ended];
    const told = Promise.allSettled(waiting);
    results.close(new Error("closed"));
    expect(await told).toMatchObject([{ reason: { message: "closed" } }, { reason: { message: "closed" } }]);
    expect(results.size).toBe(0);
  });
});
