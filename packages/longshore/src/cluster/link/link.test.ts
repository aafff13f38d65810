// The link on real sockets: calls, errors, order, streams, and what happens when it breaks.

import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { startNode, startOwner } from "../../../test/support/link.ts";
import { deferred, until } from "../../../test/support/until.ts";
import { LongshoreError, TerminalError } from "../../core/errors.ts";
import { TestClock } from "../../testing/clock.ts";
import type { LinkOwner } from "./dial.ts";
import type { LinkCall, LinkService, LinkStream } from "./service.ts";

/** A service whose calls the test answers. */
function held() {
  const calls: { name: string; args: unknown; call: LinkCall; answer: (value: unknown) => void; fail: (error: unknown) => void }[] = [];
  const service: LinkService = {
    call(name, args, call) {
      const { promise, resolve, reject } = deferred<unknown>();
      calls.push({ name, args, call, answer: resolve, fail: reject });
      return promise;
    },
    open: () => () => undefined,
  };
  return { calls, service };
}

/** A service with streams that the test feeds. */
function feed() {
  const streams: { name: string; args: unknown; stream: LinkStream; closed: boolean }[] = [];
  const service: LinkService = {
    call: async (_name, args) => args,
    open(name, args, stream) {
      const opened = { name, args, stream, closed: false };
      streams.push(opened);
      return () => {
        opened.closed = true;
      };
    },
  };
  return { streams, service };
}

/** Passes bytes between a node and the owner until it is told to swallow them. */
async function proxyTo(owner: LinkOwner) {
  const sockets = new Set<Socket>();
  const state = { silent: false };
  const server = createServer((near) => {
    const far = createConnection(Number(new URL(owner.url).port), "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => state.silent || to.write(bytes));
      from.on("close", () => to.destroy());
      from.on("error", () => undefined);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    state,
  };
}

describe("a call", () => {
  it("returns the owner's answer, which sees the name, the arguments and the node", async () => {
    const seen: unknown[] = [];
    const owner = await startOwner({
      call: async (name, args, { node, key, signal }) => {
        seen.push([name, args, node, typeof key, signal.aborted]);
        return { sum: 3 };
      },
      open: () => () => undefined,
    });
    const node = startNode(() => owner);
    expect(await node.call("add", { terms: [1, 2], note: undefined })).toEqual({ sum: 3 });
    expect(seen).toEqual([["add", { terms: [1, 2] }, "node-2", "string", false]]);
    expect(node.owner).toBe(owner);
  });

  it("keeps undefined, null and texts apart", async () => {
    const owner = await startOwner();
    const node = startNode(() => owner);
    for (const value of [undefined, null, 0, "", "\ud800", "grüße \u2028", false, [null], 1e-7])
      expect(await node.call("echo", value)).toEqual(value);
  });

  it("gets its own answer when answers come in another order", async () => {
    const { calls, service } = held();
    const owner = await startOwner(service);
    const node = startNode(() => owner);
    const answers = [node.call("a", 1), node.call("b", 2), node.call("c", 3)];
    await until(() => calls.length === 3);
    expect(calls.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    for (const { args, answer } of calls.toReversed()) answer(args);
    expect(await Promise.all(answers)).toEqual([1, 2, 3]);
    expect(new Set(calls.map(({ call }) => call.key)).size).toBe(3);
  });

  it("travels with all others of its turn in one frame", async () => {
    const owner = await startOwner();
    const node = startNode(() => owner);
    await node.call("echo", 0);
    const before = node.figures.bytesOut;
    await Promise.all(Array.from({ length: 100 }, () => node.call("echo", 1)));
    // 99 frames more would take 99 lengths more.
    const message = '[1,100,"echo",1],'.length;
    expect(node.figures.bytesOut - before).toBeLessThanOrEqual(100 * message + 4 + 2);
    expect(node.figures).toMatchObject({ calls: 101, resent: 0, unanswered: 0, connects: 1 });
    expect(owner.link.figures).toMatchObject({ links: 1, calls: 101, unanswered: 0 });
  });

  it("rejects with the error of the owner: code, detail, causes and plain fields", async () => {
    const thrown = [
      Object.assign(new LongshoreError("LONGSHORE_BAD_INPUT", "No.", { detail: { field: "jobs[2]" } }), { retryInMs: 50 }),
      new TerminalError("Final.", { cause: new LongshoreError("LONGSHORE_CONFLICT", "Taken.") }),
      new RangeError("Too far."),
    ];
    const owner = await startOwner({
      call: async (_name, at) => Promise.reject(thrown[at as number]),
      open: () => () => undefined,
    });
    const node = startNode(() => owner);
    const [first, second, third] = await Promise.all(thrown.map((_error, at) => node.call("x", at).catch((error: unknown) => error)));
    expect(first).toBeInstanceOf(LongshoreError);
    expect(first).toMatchObject({ code: "LONGSHORE_BAD_INPUT", message: "No.", detail: { field: "jobs[2]" }, retryInMs: 50 });
    expect(second).toBeInstanceOf(TerminalError);
    expect(second).toMatchObject({ message: "Final.", cause: { code: "LONGSHORE_CONFLICT" } });
    expect(third).not.toBeInstanceOf(LongshoreError);
    expect(third).toMatchObject({ name: "RangeError", message: "Too far." });
  });

  it("rejects alone when its arguments or its answer are no JSON", async () => {
    const owner = await startOwner({ call: async (name, args) => (name === "bad" ? 1n : args), open: () => () => undefined });
    const node = startNode(() => owner);
    const good = node.call("echo", 1);
    await expect(node.call("echo", 1n)).rejects.toThrow("BigInt");
    await expect(node.call("bad", 1)).rejects.toThrow("BigInt");
    expect(await good).toBe(1);
    expect(node.figures.connects).toBe(1);
  });

  it("passes the abort of its signal on, and still takes the owner's answer", async () => {
    const { calls, service } = held();
    const owner = await startOwner(service);
    const node = startNode(() => owner);
    const abort = new AbortController();
    const answer = node.call("claim", null, { signal: abort.signal });
    await until(() => calls.length === 1);
    const [{ call, answer: reply }] = calls as [(typeof calls)[0]];
    abort.abort();
    await until(() => call.signal.aborted);
    reply("granted all the same");
    expect(await answer).toBe("granted all the same");
    await expect(node.call("claim", null, { signal: abort.signal })).rejects.toBe(abort.signal.reason);
    expect(calls.length).toBe(1);
  });

  it("rejects at once when its signal aborts and there is no link", async () => {
    const node = startNode(() => null);
    const abort = new AbortController();
    const answer = node.call("claim", null, { signal: abort.signal });
    abort.abort(new Error("Enough."));
    await expect(answer).rejects.toThrow("Enough.");
    expect(node.figures.unanswered).toBe(0);
  });

  it("rejects when the node closes", async () => {
    const { calls, service } = held();
    const owner = await startOwner(service);
    const node = startNode(() => owner);
    const answer = node.call("a", 1);
    await until(() => calls.length === 1);
    await Promise.all([expect(answer).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" }), node.close()]);
    await expect(node.call("a", 1)).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
    await until(() => owner.link.figures.links === 0);
  });
});

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
    // The answer of the first attempt belongs to a link that is gone.
    calls[0]?.answer("late");
    calls[3]?.answer("again 1");
    calls[4]?.answer("again 3");
    expect(await Promise.all(answers)).toEqual(["again 1", "done", "again 3"]);
    expect(node.figures).toMatchObject({ calls: 3, resent: 2, unanswered: 0, connects: 2 });
  });

  it("they go to the node that owns the data next", async () => {
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

  it("tries follow each other with growing pauses", async () => {
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

  it("a change of the owner ends the pause, and the link to a node that owns nothing any more", async () => {
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

  it("silence is noticed by both sides, and calls are sent again", async () => {
    const clock = new TestClock();
    const { calls, service } = held();
    const owner = await startOwner(service, { clock });
    const proxy = await proxyTo(owner);
    let url = proxy.url;
    const node = startNode(() => ({ node: owner.node, url }), { clock });
    const answer = node.call("settle", 1);
    await until(() => calls.length === 1);
    const { signal } = (calls[0] as (typeof calls)[0]).call;
    // Pings keep a quiet link.
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

  it("a process that was stopped for long does not cut a link that is well", async () => {
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

describe("a stream", () => {
  it("brings events in order until the node closes it", async () => {
    const { streams, service } = feed();
    const owner = await startOwner(service);
    const node = startNode(() => owner);
    const events: unknown[] = [];
    const close = node.open(
      "changes",
      { of: "runs" },
      { event: (event) => events.push(event), opened: (name) => events.push(`opened at ${name}`) },
    );
    await until(() => streams.length === 1);
    expect(streams[0]).toMatchObject({ name: "changes", args: { of: "runs" }, stream: { node: "node-2" } });
    for (const event of [1, { two: 2 }, null]) streams[0]?.stream.emit(event);
    await until(() => events.length === 4);
    expect(events).toEqual(["opened at owner-1", 1, { two: 2 }, null]);
    close();
    close();
    await until(() => streams[0]?.closed === true);
    streams[0]?.stream.emit("too late");
    expect(await node.call("echo", 1)).toBe(1);
    expect(events.length).toBe(4);
    expect(owner.link.figures.streams).toBe(0);
  });

  it("is opened again after the link broke, before calls are sent again", async () => {
    const order: string[] = [];
    const waiting = deferred<unknown>();
    const { streams, service } = feed();
    const owner = await startOwner({
      call: (name) => {
        order.push(name);
        return waiting.promise;
      },
      open: (name, args, stream) => {
        order.push(name);
        return service.open(name, args, stream);
      },
    });
    const node = startNode(() => owner);
    const events: unknown[] = [];
    const answer = node.call("wait", 1);
    node.open("changes", null, { event: (event) => events.push(event), opened: () => events.push("opened") });
    await until(() => events.length === 1);
    owner.link.cut();
    expect(streams[0]?.closed).toBe(true);
    await until(() => events.length === 2);
    streams[0]?.stream.emit("of the old link");
    streams[1]?.stream.emit("of the new link");
    waiting.resolve("answered");
    expect(await answer).toBe("answered");
    expect(events).toEqual(["opened", "opened", "of the new link"]);
    expect(order).toEqual(["changes", "wait", "changes", "wait"]);
  });

  it("ends when the owner ends it, with the error of one that could not be opened", async () => {
    const ended: unknown[] = [];
    const owner = await startOwner({
      call: async () => undefined,
      open(name, _args, stream) {
        if (name === "none") throw new LongshoreError("LONGSHORE_NOT_FOUND", "No such stream.");
        stream.emit("only this");
        stream.end();
        return () => ended.push("closed");
      },
    });
    const node = startNode(() => owner);
    const events: unknown[] = [];
    node.open("some", null, { event: (event) => events.push(event), ended: (error) => ended.push(error) });
    node.open("none", null, { event: (event) => events.push(event), ended: (error) => ended.push(error) });
    await until(() => ended.length === 2);
    expect(events).toEqual(["only this"]);
    expect(ended).toEqual([undefined, expect.objectContaining({ code: "LONGSHORE_NOT_FOUND" })]);
    owner.link.cut();
    expect(await node.call("x", 1)).toBeUndefined();
    expect(owner.link.figures.streams).toBe(0);
  });

  it("survives a listener that throws", async () => {
    const { streams, service } = feed();
    const owner = await startOwner(service);
    const node = startNode(() => owner);
    const events: unknown[] = [];
    node.open("changes", null, {
      event(event) {
        events.push(event);
        throw new Error("A mistake of the listener.");
      },
    });
    await until(() => streams.length === 1);
    streams[0]?.stream.emit(1);
    streams[0]?.stream.emit(2);
    await until(() => events.length === 2);
    expect(node.figures.connects).toBe(1);
  });
});

describe("limits", () => {
  it("refuse calls beyond the number and the bytes that may wait", async () => {
    const node = startNode(() => null, { limits: { calls: 2 } });
    const waiting = [node.call("a", 1), node.call("a", 2)];
    await expect(node.call("a", 3)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    const full = startNode(() => null, { limits: { callBytes: 100 } });
    const held = full.call("a", "x".repeat(60));
    await expect(full.call("a", "x".repeat(60))).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    const ended = [...waiting, held].map((each) => expect(each).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" }));
    await Promise.all([node.close(), full.close(), ...ended]);
  });

  it("refuse what does not fit into a frame, in both directions, and divide what does not fit into one", async () => {
    const limits = { frameBytes: 5_000, frameChars: 2_000 };
    const owner = await startOwner({ call: async (_name, size) => "ü".repeat(size as number), open: () => () => undefined }, { limits });
    const node = startNode(() => owner, { limits });
    await expect(node.call("x", "y".repeat(5_000))).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    await expect(node.call("x", 2_500)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    const answers = (await Promise.all(Array.from({ length: 20 }, () => node.call("x", 2_400)))) as string[];
    expect(answers.every((text) => text === "ü".repeat(2_400))).toBe(true);
    expect(node.figures.connects).toBe(1);
  });

  it("refuse calls that wait at the owner beyond its own limit", async () => {
    const { calls, service } = held();
    const owner = await startOwner(service, { limits: { calls: 1 } });
    const node = startNode(() => owner);
    const first = node.call("a", 1);
    await expect(node.call("a", 2)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    calls[0]?.answer("fine");
    expect(await first).toBe("fine");
  });

  it("cut off a node that does not read its events", async () => {
    const { streams, service } = feed();
    const owner = await startOwner(service, { limits: { sendingBytes: 1_000_000 } });
    const proxy = await proxyTo(owner);
    const node = startNode(() => ({ node: owner.node, url: proxy.url }));
    node.open("changes", null, { event: () => undefined });
    await until(() => streams.length === 1);
    // More than the buffers of the system take at once.
    for (let at = 0; at < 16; at++) streams[0]?.stream.emit("x".repeat(1_000_000));
    await until(() => streams[0]?.closed === true);
  });
});
