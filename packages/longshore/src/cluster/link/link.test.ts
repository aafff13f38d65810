// The link on real sockets: calls, errors, order and limits.

import { describe, expect, it } from "vitest";
import { feed, held, startNode, startOwner } from "../../../test/support/link.ts";
import { until } from "../../../test/support/until.ts";
import { LongshoreError, TerminalError } from "../../core/errors.ts";

describe("a call", () => {
  it("passes its name, arguments and node to the owner, and returns the owner's answer", async () => {
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

  it("is sent with all other calls of its turn in one frame", async () => {
    const owner = await startOwner();
    const node = startNode(() => owner);
    await node.call("echo", 0);
    const before = node.figures.bytesOut;
    await Promise.all(Array.from({ length: 100 }, () => node.call("echo", 1)));
    // 99 more frames would have 99 more length fields.
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

  it("rejects alone when its arguments or its answer are not JSON", async () => {
    const owner = await startOwner({ call: async (name, args) => (name === "bad" ? 1n : args), open: () => () => undefined });
    const node = startNode(() => owner);
    const good = node.call("echo", 1);
    await expect(node.call("echo", 1n)).rejects.toThrow("BigInt");
    await expect(node.call("bad", 1)).rejects.toThrow("BigInt");
    expect(await good).toBe(1);
    expect(node.figures.connects).toBe(1);
  });

  it("passes on the abort of its signal, and still returns the owner's answer", async () => {
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

  it("refuse a message that is larger than a frame, in both directions, and divide several messages among frames", async () => {
    const limits = { frameBytes: 5_000, frameChars: 2_000 };
    const owner = await startOwner({ call: async (_name, size) => "ü".repeat(size as number), open: () => () => undefined }, { limits });
    const node = startNode(() => owner, { limits });
    await expect(node.call("x", "y".repeat(5_000))).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    await expect(node.call("x", 2_500)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    const answers = (await Promise.all(Array.from({ length: 20 }, () => node.call("x", 2_400)))) as string[];
    expect(answers.every((text) => text === "ü".repeat(2_400))).toBe(true);
    expect(node.figures.connects).toBe(1);
  });

  it("refuse calls when too many wait at the owner", async () => {
    const { calls, service } = held();
    const owner = await startOwner(service, { limits: { calls: 1 } });
    const node = startNode(() => owner);
    const first = node.call("a", 1);
    await expect(node.call("a", 2)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    calls[0]?.answer("fine");
    expect(await first).toBe("fine");
  });

  it("disconnect a node that does not read its events", async () => {
    const { streams, service } = feed();
    const owner = await startOwner(service, { limits: { sendingBytes: 1_000_000 } });
    const node = startNode(() => owner);
    node.open("changes", null, { event: () => undefined });
    await until(() => streams.length === 1);
    // More than the system's buffers accept in one turn.
    for (let at = 0; at < 16; at++) streams[0]?.stream.emit("x".repeat(1_000_000));
    await until(() => streams[0]?.closed === true);
  });
});
