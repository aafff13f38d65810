import { describe, expect, it } from "vitest";
import { groupOf, latch, RawClient, route, startServer, turn } from "../../../test/support/http.ts";
import { TestClock } from "../../testing/clock.ts";
import type { EventSink, HttpReply } from "../http/http.ts";
import { type HttpLimits, httpLimits } from "./limits.ts";
import { frameText } from "./sse.ts";

describe("a frame", () => {
  it("has its event, its id and its data in that order", () => {
    expect(frameText({ event: "log", id: "7", data: '{"a":1}' })).toBe('event: log\nid: 7\ndata: {"a":1}\n\n');
    expect(frameText({ data: "x" })).toBe("data: x\n\n");
  });

  it("writes a data line for each line, for any line ending", () => {
    expect(frameText({ data: "a\nb\r\nc\rd" })).toBe("data: a\ndata: b\ndata: c\ndata: d\n\n");
  });

  it("is not broken by a line end in a name or an id", () => {
    expect(frameText({ event: "a\ndata: evil", id: "1\r\n2\0", data: "x" })).toBe("event: adata: evil\nid: 12\ndata: x\n\n");
  });
});

async function setup(limits: Partial<HttpLimits> = {}) {
  const clock = new TestClock();
  const opened = latch<EventSink>();
  const events = route("GET /events", () => ({ status: 200, events: (sink) => opened.open(sink) }), { openEnded: true });
  const server = await startServer({ groups: [groupOf("main", [events])], clock, limits });
  const client = new RawClient(server);
  client.send("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n");
  return { clock, server, client, sink: await opened.opened };
}

/** Sends until the sink accepts no more. Returns how many frames it accepted. */
function fill(sink: EventSink, data: string): number {
  let taken = 0;
  while (sink.send({ data })) taken++;
  return taken;
}

describe("an event stream", () => {
  it("tells its reader that it is connected before the first event", async () => {
    const { client } = await setup();
    const head = await client.until("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(head.toLowerCase()).toContain("content-type: text/event-stream\r\ncache-control: no-cache\r\n");
  });

  it("delivers frames in order and completely, and ends when it is ended", async () => {
    const { client, sink } = await setup();
    for (let id = 0; id < 100; id++) expect(sink.send({ id: String(id), data: `event ${id}` })).toBe(true);
    sink.end();
    const text = await client.until("0\r\n\r\n");
    expect([...text.matchAll(/id: (\d+)/g)].map((match) => Number(match[1]))).toEqual(Array.from({ length: 100 }, (_, id) => id));
    expect(sink.send({ data: "late" })).toBe(false);
    sink.end();
  });

  it("ends at once when its reply comes after the server has begun to close", async () => {
    const [asked, answered] = [latch<void>(), latch<void>()];
    let given: EventSink | undefined;
    const reply: HttpReply = {
      status: 200,
      events: (sink) => {
        given = sink;
      },
    };
    const late = route(
      "GET /late",
      async () => {
        asked.open();
        await answered.opened;
        return reply;
      },
      { openEnded: true },
    );
    // This clock does not move, so the deadline of `close` never comes.
    const server = await startServer({ groups: [groupOf("main", [late])], clock: new TestClock() });
    const client = new RawClient(server);
    client.send("GET /late HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await asked.opened;
    const closed = server.close();
    answered.open();
    await closed;
    expect(given?.gone.aborted).toBe(true);
    await client.until("200 OK\r\n");
  });

  it("sends the frames of one tick in one chunk", async () => {
    const { client, sink } = await setup();
    sink.send({ data: "a" });
    sink.send({ data: "b" });
    await client.until("data: b\n\n");
    expect(client.received).toContain("data: a\n\ndata: b\n\n");
  });

  it("gets a comment in each quiet period, and none while events are sent", async () => {
    const { client, sink, clock } = await setup();
    await client.until("\r\n\r\n");
    await clock.advance(httpLimits.eventQuietMs);
    await client.until(":\n\n");
    client.received = "";
    sink.send({ data: "x" });
    await clock.advance(httpLimits.eventQuietMs);
    await client.until("data: x\n\n");
    expect(client.received).not.toContain("\n:\n\n");
    await clock.advance(httpLimits.eventQuietMs);
    await client.until(":\n\n");
  });

  it("aborts `gone` when its reader disconnects, and no timer remains", async () => {
    const { client, sink, clock, server } = await setup();
    const gone = new Promise((resolve) => sink.gone.addEventListener("abort", resolve));
    expect(clock.pending).toBe(1);
    client.socket.destroy();
    await gone;
    expect(sink.send({ data: "x" })).toBe(false);
    await sink.drained();
    expect(clock.pending).toBe(0);
    expect(server.metrics.text()).toContain("longshore_http_in_flight 0\n");
  });

  it("does not accept a frame when its reader is too slow, and reports when the reader has caught up", async () => {
    const { client, sink } = await setup();
    client.socket.pause();
    const data = "y".repeat(10_000);
    let taken = 0;
    // The system's own buffers first accept some megabytes. In each turn, the content of the sink is passed to them.
    for (let stuck = 0; stuck < 20; stuck++) {
      const more = fill(sink, data);
      if (more > 0) stuck = 0;
      taken += more;
      await turn();
    }
    expect(sink.send({ data })).toBe(false);
    const drained = sink.drained();
    client.socket.resume();
    await drained;
    expect(sink.send({ id: "last", data: "after" })).toBe(true);
    const text = await client.until("id: last\ndata: after\n\n");
    expect(text.split(data)).toHaveLength(taken + 1);
  });

  it("lets a sender continue when the frames of a tick are written, although no drain was needed", async () => {
    const { client, sink } = await setup({ eventBufferBytes: 1_000 });
    expect(fill(sink, "z".repeat(90))).toBeGreaterThan(5);
    await sink.drained();
    expect(sink.send({ data: "next" })).toBe(true);
    await client.until("data: next");
  });

  it("is disconnected when its reader has read nothing for too long", async () => {
    const { client, sink, clock, server } = await setup({ eventStallsMax: 3 });
    client.socket.pause();
    for (let stuck = 0; stuck < 20; stuck++) {
      if (fill(sink, "y".repeat(10_000)) > 0) stuck = 0;
      await turn();
    }
    const waiting = sink.drained();
    await clock.advance(2 * httpLimits.eventQuietMs);
    expect(sink.gone.aborted).toBe(false);
    await clock.advance(httpLimits.eventQuietMs);
    await waiting;
    while (server.connections() > 0) await turn();
    expect(sink.gone.aborted).toBe(true);
  });

  it("is ended by the closing server after all accepted frames", async () => {
    const { client, sink, server } = await setup();
    sink.send({ data: "last words" });
    const closed = server.close();
    expect(sink.gone.aborted).toBe(true);
    expect(await client.closed()).toMatch(/data: last words\n\n\r\n0\r\n\r\n$/);
    await closed;
  });

  it("that fails to start is logged and ended", async () => {
    const events = () => {
      throw new Error("cannot follow");
    };
    const broken = route("GET /events", () => ({ status: 200, events }), { openEnded: true });
    const server = await startServer({ groups: [groupOf("main", [broken])] });
    const client = new RawClient(server);
    client.send("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await client.until("0\r\n\r\n");
    expect(server.log.join()).toContain("cannot follow");
  });
});
