import { describe, expect, it } from "vitest";
import { Results, whenAborted } from "./results.ts";

type Thing = { open: boolean; name: string };

const isOpen = (thing: Thing) => thing.open;
const ended: Thing = { open: false, name: "ended" };

describe("results", () => {
  it("answers at once what has ended already, and keeps nobody in line", async () => {
    const results = new Results<Thing>();
    expect(await results.of("a", async () => ended, isOpen)).toBe(ended);
    expect(results.size).toBe(0);
  });

  it("returns undefined for what does not exist", async () => {
    const results = new Results<Thing>();
    expect(await results.of("a", async () => undefined, isOpen)).toBeUndefined();
    expect(results.size).toBe(0);
  });

  it("tells everybody who waits for the id, and nobody else", async () => {
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

  it("does not miss an end that comes while it looks", async () => {
    const results = new Results<Thing>();
    const look = async () => {
      results.tell("a", ended);
      return { open: true, name: "as it was before" };
    };
    expect(await results.of("a", look, isOpen)).toBe(ended);
  });

  it("leaves the line when looking fails", async () => {
    const results = new Results<Thing>();
    const look = async () => {
      throw new Error("the store is closed");
    };
    await expect(results.of("a", look, isOpen)).rejects.toThrow("the store is closed");
    expect(results.size).toBe(0);
  });

  it("a caller whose patience is over leaves the line with what it sees then", async () => {
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

  it("a caller without any patience is answered at once, and one is told of the end of everything", async () => {
    const results = new Results<Thing>();
    const open = async () => ({ open: true, name: "running" });
    expect((await results.of("a", open, isOpen, whenAborted(AbortSignal.abort())))?.name).toBe("running");
    expect(results.size).toBe(0);
    const waiting = results.of("a", open, isOpen, whenAborted(new AbortController().signal));
    results.close(new Error("closed"));
    await expect(waiting).rejects.toThrow("closed");
  });

  it("lets one leave without disturbing the others", async () => {
    const results = new Results<Thing>();
    const { leave } = results.expect("a");
    const { ended: waiting } = results.expect("a");
    leave();
    leave();
    results.tell("a", ended);
    expect(await waiting).toBe(ended);
  });

  it("tells everybody who waits when nothing will end any more", async () => {
    const results = new Results<Thing>();
    const open = async () => ({ open: true, name: "running" });
    const waiting = [results.of("a", open, isOpen), results.expect("b").ended];
    const told = Promise.allSettled(waiting);
    results.close(new Error("closed"));
    expect(await told).toMatchObject([{ reason: { message: "closed" } }, { reason: { message: "closed" } }]);
    expect(results.size).toBe(0);
  });
});
