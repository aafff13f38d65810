// What happens to calls when the link breaks: they are sent again, to the same owner or to the next one.

import { describe, expect, it } from "vitest";
import { held, proxyTo, startNode, startOwner } from "../../../test/support/link.ts";
import { deferred, until } from "../../../test/support/until.ts";
import { TestClock } from "../../testing/clock.ts";
import type { LinkOwner } from "./dial.ts";

describe("when the link breaks", () => {
  it("calls without an answer are sent again in their order, with the same keys", async () => {
    const { calls, service } = held();
    const owner = await startOwner(service);
    const node = startNode(() => owner);
    const answers = [1, 2, 3].map((each) => node.call("settle", each));
    await until(() => calls.length === 3);
    (calls[1] as (typeof calls)[0]).answer("done");
    expect(await answers[1]).toBe("done");
    const signals = calls.map(({ call }) => call.signal);
    owner.link.cut();
    await until(() => calls.length === 5);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false, true]);
    expect(calls.slice(3).map(({ args, call }) => [args, call.key])).toEqual([
      [1, calls[0]?.call.key],
      [3, calls[2]?.call.key],
    ]);
    // The answer of the first attempt belongs to a link that no longer exists.
    calls[0]?.answer("late");
    calls[3]?.answer("again 1");
    calls[4]?.answer("again 3");
    expect(await Promise.all(answers)).toEqual(["again 1", "done", "again 3"]);
    expect(node.figures).toMatchObject({ calls: 3, resent: 2, unanswered: 0, connects: 2 });
  });

  it("they are sent to the next owner", async () => {
    const [first, second] = [held(), held()];
    const owners = [await startOwner(first.service), await startOwner(second.service, { node: "owner-2" })] as const;
    let current: LinkOwner | null = owners[0];
    const node = startNode(() => current);
    const answer = node.call("settle", 1);
    await until(() => first.calls.length === 1);
    current = owners[1];
    await owners[0].http.close(0);
    await until(() => second.calls.length === 1);
    expect(second.calls[0]?.call.key).toBe(first.calls[0]?.call.key);
    second.calls[0]?.answer("by the second");
    expect(await answer).toBe("by the second");
    expect(node.owner?.node).toBe("owner-2");
  });

  it("a call that must not be repeated is rejected, and one that was never sent is sent", async () => {
    const { calls, service } = held();
    const owner = await startOwner(service);
    let current: LinkOwner | null = owner;
    const node = startNode(() => current);
    const once = node.call("append", 1, { repeat: false });
    await until(() => calls.length === 1);
    current = null;
    owner.link.cut();
    await expect(once).rejects.toMatchObject({
      code: "LONGSHORE_STORE_UNAVAILABLE",
      message: expect.stringContaining("may have been carried out"),
    });
    const later = node.call("append", 2, { repeat: false });
    current = owner;
    await until(() => calls.length === 2);
    calls[1]?.answer("kept");
    expect(await later).toBe("kept");
  });

  it("a call whose caller has left is not sent again", async () => {
    const { calls, service } = held();
    const owner = await startOwner(service);
    const node = startNode(() => owner);
    const abort = new AbortController();
    const answer = node.call("claim", 1, { signal: abort.signal });
    await until(() => calls.length === 1);
    abort.abort(new Error("Left."));
    await until(() => calls[0]?.call.signal.aborted === true);
    owner.link.cut();
    await expect(answer).rejects.toThrow("Left.");
  });

  it("a call waits for an owner, and is rejected when none comes in time", async () => {
    const clock = new TestClock();
    const node = startNode(() => null, { clock });
    const early = node.call("a", 1).catch((error: unknown) => error);
    await clock.advance(6_000);
    let late: unknown;
    const other = node.call("b", 2).catch((error: unknown) => {
      late = error;
    });
    await clock.advance(4_000);
    expect(await early).toMatchObject({
      code: "LONGSHORE_STORE_UNAVAILABLE",
      message: expect.stringContaining("No node owns the data now."),
    });
    expect(late).toBeUndefined();
    await clock.advance(6_000);
    await other;
    expect(late).toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
  });

  it("the pauses between attempts grow", async () => {
    const clock = new TestClock();
    const tries: number[] = [];
    const startMs = clock.now();
    const node = startNode(
      () => {
        tries.push(clock.now() - startMs);
        return null;
      },
      { clock, random: () => 0.5 },
    );
    const answer = node.call("a", 1).catch(() => undefined);
    await clock.advance(4_000);
    expect(tries).toEqual([0, 50, 150, 350, 750, 1_550, 2_550, 3_550]);
    await clock.advance(6_000);
    await answer;
  });

  it("the search for the owner is repeated when it takes too long, and a node can close meanwhile", async () => {
    const clock = new TestClock();
    const owner = await startOwner();
    let found = new Promise<LinkOwner | null>(() => undefined);
    const node = startNode(() => null, { clock, owner: () => found });
    const answer = node.call("echo", 1);
    await clock.armed(5_000);
    found = Promise.resolve(owner);
    await clock.advance(5_100);
    expect(await answer).toBe(1);
    found = new Promise(() => undefined);
    await node.close();

    const waiting = startNode(() => null, { owner: () => found });
    const never = expect(waiting.call("echo", 1)).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
    await Promise.all([waiting.close(), never]);
  });

  it("all calls are sent again, even more than the owner would keep for a slow node", async () => {
    const limits = { sendingBytes: 1_000 };
    const { calls, service } = held();
    const owner = await startOwner(service);
    const node = startNode(() => owner, { limits });
    const answers = Array.from({ length: 50 }, (_each, at) => node.call("settle", "x".repeat(100_000) + at));
    await until(() => calls.length === 50);
    owner.link.cut();
    await until(() => calls.length === 100);
    for (const { answer } of calls.slice(50)) answer("ok");
    await Promise.all(answers);
    expect(node.figures).toMatchObject({ connects: 2, resent: 50 });
  });

  it("a change of the owner ends the pause, and also the link to the old owner", async () => {
    const clock = new TestClock();
    const owners = [await startOwner(), await startOwner(undefined, { node: "owner-2" })] as const;
    let current: LinkOwner | null = null;
    const asked = deferred<void>();
    const node = startNode(
      () => {
        asked.resolve();
        return current;
      },
      { clock },
    );
    const answer = node.call("echo", 1);
    await asked.promise;
    await clock.armed(100, 1);
    current = owners[0];
    await node.ownerChanged();
    expect(await answer).toBe(1);
    await node.ownerChanged();
    expect(node.owner?.node).toBe("owner-1");
    current = owners[1];
    await node.ownerChanged();
    expect(node.owner).toBeUndefined();
    expect(await node.call("echo", 2)).toBe(2);
    expect(node.owner?.node).toBe("owner-2");
  });

  it("both sides detect silence, and calls are sent again", async () => {
    const clock = new TestClock();
    const { calls, service } = held();
    const owner = await startOwner(service, { clock });
    const proxy = await proxyTo(owner);
    let url = proxy.url;
    const node = startNode(() => ({ node: owner.node, url }), { clock });
    const answer = node.call("settle", 1);
    await until(() => calls.length === 1);
    const { signal } = (calls[0] as (typeof calls)[0]).call;
    // Pings keep an idle link open.
    for (let second = 0; second < 10; second++) {
      const { bytesIn } = node.figures;
      const before = owner.link.figures.bytesIn;
      await clock.advance(1_000);
      await until(() => node.figures.bytesIn > bytesIn && owner.link.figures.bytesIn > before);
    }
    expect(signal.aborted).toBe(false);
    proxy.state.silent = true;
    url = owner.url;
    await clock.advance(4_000);
    expect(signal.aborted).toBe(true);
    await until(() => calls.length === 2);
    calls[1]?.answer("found again");
    expect(await answer).toBe("found again");
  });

  it("a process that was stopped for a long time does not cut a working link", async () => {
    const clock = new TestClock();
    const owner = await startOwner(undefined, { clock });
    const node = startNode(() => owner, { clock });
    await node.call("echo", 1);
    clock.jump(60_000);
    const { bytesIn } = node.figures;
    await clock.advance(0);
    await until(() => node.figures.bytesIn > bytesIn);
    expect(await node.call("echo", 2)).toBe(2);
    expect(node.figures.connects).toBe(1);
  });
});
