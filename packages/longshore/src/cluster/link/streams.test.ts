// Streams of events over the link.

import { describe, expect, it } from "vitest";
import { feed, startNode, startOwner } from "../../../test/support/link.ts";
import { deferred, until } from "../../../test/support/until.ts";
import { LongshoreError } from "../../core/errors.ts";

describe("a stream", () => {
  it("delivers events in order until the node closes it", async () => {
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

  it("ends when the owner ends it, or with an error when it could not be opened", async () => {
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

  it("continues when a listener throws", async () => {
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
