// What clients of a node see when another node performs their request: a Forwarder and a Performer with a real link between them.

import { Readable } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { startNode, startOwner } from "../../test/support/link.ts";
import { callerWith, everyone } from "../core/actions.ts";
import { systemClock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import { idMaker } from "../core/ids.ts";
import { RequestIds } from "../core/request-ids.ts";
import type { EventSink, HttpReply, HttpRequest, Route, ServerSentEvent } from "../net/http/http.ts";
import { problemOf } from "../net/listener/problems.ts";
import { type CallOwner, Forwarder } from "./forwarder.ts";
import { Performer } from "./performer.ts";

type Handle = Route["handle"];

function routeOf(handle: Handle, more: Partial<Route> = {}): Route {
  return { method: "POST", path: "/things", action: "task.claim", body: "text", handle, ...more };
}

function performerOf(routes: readonly Route[]): Performer {
  const group = { name: "test", routes, refuse: (): HttpReply => ({ status: 500 }) };
  return new Performer({
    ...{ table: { groups: [group], methods: [] }, clock: systemClock, ids: new RequestIds(idMaker()) },
    answers: { answer: async () => null, keepAnswer: async () => {} },
    program: async () => undefined,
    isOver: () => false,
  });
}

async function setup(route: Route) {
  const performer = performerOf([route]);
  let owner = await startOwner(performer);
  const link = startNode(() => owner, { limits: { retryMs: 5, retryMsMax: 5 } });
  const forwarder = new Forwarder({ owner: link, makeId: idMaker(), clock: systemClock });
  return {
    performer,
    link,
    ask: (more: Partial<HttpRequest> = {}) => forwarder.request(route, requestOf(more)),
    /** Cuts the link. The next link is to the same owner. */
    cut: () => owner.link.cut(),
    async takeOver(next: Route) {
      const [lost, taken] = [owner, performerOf([next])];
      owner = await startOwner(taken, { node: "owner-2" });
      lost.link.close();
    },
  };
}

function requestOf(more: Partial<HttpRequest>): HttpRequest {
  const gone = new AbortController().signal;
  return {
    ...{
      method: "POST",
      path: "/things",
      params: {},
      query: new URLSearchParams(),
      headers: {},
      text: "",
      parsed: undefined,
      caller: everyone,
    },
    ...{ stream: Readable.from([]), streamText: async () => "", gone },
    ...more,
  };
}

async function bytesOf(body: HttpReply["body"]): Promise<Buffer> {
  if (!(body instanceof Readable)) return Buffer.from(body as string);
  const pieces: Buffer[] = [];
  for await (const piece of body) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

it("a long reply with a known length arrives in one piece, so that routes without an open end may send it", async () => {
  const text = "äö".repeat(400_000);
  const s = await setup(routeOf(() => ({ status: 200, headers: { "x-a": "b" }, body: text })));
  const { body, status, headers } = await s.ask();
  expect(body).toBeInstanceOf(Buffer);
  expect({ status, headers, text: (body as Buffer).toString() }).toEqual({ status: 200, headers: { "x-a": "b" }, text });
});

it("when the owner is lost in the middle of a long reply, the reply is fetched from the next owner", async () => {
  const long = Buffer.alloc(3_000_000, 7);
  let asked = 0;
  const s = await setup(
    routeOf(() => {
      // The reply is ready, and the link breaks before its body is fetched.
      if (asked++ === 0) setImmediate(() => setImmediate(() => s.cut()));
      return { status: 200, body: long };
    }),
  );
  const { body } = await s.ask();
  expect((body as Buffer).equals(long)).toBe(true);
});

it("a body without a known length is passed on piece by piece", async () => {
  const s = await setup(
    routeOf(() => ({ status: 200, body: Readable.from([Buffer.from("one"), Buffer.from("two")]) }), { openEnded: true }),
  );
  expect((await bytesOf((await s.ask()).body)).toString()).toBe("onetwo");
});

it("a streamed body of any length reaches its route complete", async () => {
  const s = await setup(routeOf(async ({ stream }) => ({ status: 200, body: String((await bytesOf(stream)).length) }), { body: "stream" }));
  for (const length of [0, 1, 1_048_576, 5_000_000]) {
    const pieces = Array.from({ length: Math.ceil(length / 65_536) }, (_, at) => Buffer.alloc(Math.min(65_536, length - at * 65_536)));
    expect((await s.ask({ stream: Readable.from(pieces) })).body).toBe(String(length));
  }
});

it("the route fails when a body breaks off or its link breaks", async () => {
  const ends: string[] = [];
  const s = await setup(
    routeOf(
      async ({ stream }) => {
        await bytesOf(stream).catch((error: Error) => ends.push(error.message));
        return { status: 400 };
      },
      { body: "stream" },
    ),
  );
  async function* broken() {
    for (let at = 0; at < 40; at++) yield Buffer.alloc(65_536);
    throw new Error("The client has gone.");
  }
  expect((await s.ask({ stream: Readable.from(broken()) })).status).toBe(400);
  async function* cut() {
    for (let at = 0; ; at++) {
      if (at === 40) s.cut();
      yield Buffer.alloc(65_536);
    }
  }
  await expect(s.ask({ stream: Readable.from(cut()) })).rejects.toThrow(LongshoreError);
  await expect.poll(() => ends).toEqual(["The body broke off before its end.", "The body broke off before its end."]);
});

it("a body that a route reads as text has the limits of text", async () => {
  const s = await setup(routeOf(async (request) => ({ status: 200, body: await request.streamText(100) }), { body: "stream" }));
  const refusalOf = (bytes: Buffer) => s.ask({ stream: Readable.from([bytes]) }).then(() => undefined, problemOf);
  expect((await refusalOf(Buffer.alloc(101, "a")))?.problem).toMatchObject({ kind: "too-large", status: 413, detail: { field: "body" } });
  expect((await refusalOf(Buffer.from([0xff, 0xfe])))?.problem).toEqual({
    ...{ kind: "bad-request", status: 400, message: "The body is not valid UTF-8.", detail: { field: "body", expected: "UTF-8" } },
  });
});

it("a reply that is ready after its link broke is given back to its route", async () => {
  let answer: () => void = () => {};
  let began: () => void = () => {};
  const begun = new Promise<void>((resolve) => (began = resolve));
  let undelivered = 0;
  let asked = 0;
  const s = await setup(
    routeOf(async () => {
      if (asked++ === 0) {
        began();
        await new Promise<void>((resolve) => (answer = resolve));
      }
      return { status: 200, undelivered: () => undelivered++ };
    }),
  );
  const replied = s.ask();
  await begun;
  s.cut();
  await replied;
  answer();
  await expect.poll(() => undelivered).toBe(1);
  expect(asked).toBe(2);
});

it("a delivered reply is confirmed; an undelivered one is given back to its route", async () => {
  const back: number[] = [];
  let at = 0;
  const s = await setup(
    routeOf(() => {
      const own = at++;
      return { status: 200, undelivered: () => back.push(own) };
    }),
  );
  (await s.ask()).delivered?.();
  (await s.ask()).undelivered?.();
  await expect.poll(() => back).toEqual([1]);
});

it("confirmations are sent later when the link is full", async () => {
  const confirmed: unknown[] = [];
  let isFull = true;
  const owner: CallOwner = {
    async call(name, args) {
      if (name === "request") return { status: 200, confirm: true };
      if (isFull) {
        isFull = false;
        throw new LongshoreError("LONGSHORE_LIMIT", "full");
      }
      confirmed.push(args);
      return undefined;
    },
  };
  const forwarder = new Forwarder({ owner, makeId: () => "id", clock: systemClock });
  (
    await forwarder.request(
      routeOf(() => ({ status: 200 })),
      requestOf({}),
    )
  ).delivered?.();
  await expect.poll(() => confirmed).toEqual([{ delivered: ["id"], undelivered: [] }]);
});

it("the owner gets the caller's name and only the caller's own scopes", async () => {
  const s = await setup(
    routeOf(({ caller }) => {
      const may = (["run.read", "task.claim", "run.start", "server.health"] as const).filter((action) => caller.may(action));
      return { status: 200, body: `${caller.name ?? ""}:${may.join(",")}` };
    }),
  );
  const seen = async (caller: HttpRequest["caller"]) => (await s.ask({ caller })).body;
  expect(await seen(callerWith("r", ["read"]))).toBe("r:run.read,server.health");
  expect(await seen(callerWith("w", ["worker"]))).toBe("w:task.claim,server.health");
  expect(await seen(callerWith("rw", ["read", "worker"]))).toBe("rw:run.read,task.claim,server.health");
  expect(await seen(callerWith("o", ["operator"]))).toBe("o:run.read,task.claim,run.start,server.health");
  expect(await seen(everyone)).toBe(":run.read,task.claim,run.start,server.health");
  expect(await seen(callerWith(undefined, []))).toBe(":server.health");
});

it("headers with secrets stay at the node", async () => {
  const s = await setup(routeOf(({ headers }) => ({ status: 200, body: Object.keys(headers).join() })));
  const secrets = { authorization: "a", "x-authorization": "b", "proxy-authorization": "c", cookie: "d" };
  expect((await s.ask({ headers: { ...secrets, accept: "text/plain" } })).body).toBe("accept");
});

it("the route at the owner notices that the client disconnects", async () => {
  let began: () => void = () => {};
  const begun = new Promise<void>((resolve) => (began = resolve));
  const s = await setup(
    routeOf(async ({ gone }) => {
      began();
      await new Promise<void>((resolve) => gone.addEventListener("abort", () => resolve(), { once: true }));
      return { status: 204 };
    }),
  );
  const leaving = new AbortController();
  const replied = s.ask({ gone: leaving.signal });
  await begun;
  leaving.abort();
  expect((await replied).status).toBe(204);
});

it("after a take-over, events continue after the last one that was sent", async () => {
  const eventsFrom = (source: string, to: number): Route =>
    routeOf(
      ({ headers }) => ({
        status: 200,
        events(sink) {
          const from = Number(headers["last-event-id"] ?? 0);
          for (let id = from + 1; id <= to; id++) sink.send({ id: String(id), data: source });
        },
      }),
      { openEnded: true },
    );
  const s = await setup(eventsFrom("first", 3));
  const { events } = await s.ask();
  const seen: ServerSentEvent[] = [];
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const sink: EventSink = { send: (event) => seen.push(event) > 0, full: false, drained: async () => {}, end: () => {}, gone: gone.signal };
  events?.(sink);
  await expect.poll(() => seen.length).toBe(3);
  await s.takeOver(eventsFrom("second", 5));
  await expect.poll(() => seen.map(({ id, data }) => `${id} ${data}`)).toEqual(["1 first", "2 first", "3 first", "4 second", "5 second"]);
});

it("a slow reader of events slows down the route at the owner, which buffers about a mebibyte", async () => {
  let sent = 0;
  const s = await setup(
    routeOf(
      () => ({
        status: 200,
        events(sink) {
          while (sent < 10_000 && sink.send({ data: "x".repeat(1_000) })) sent++;
        },
      }),
      { openEnded: true },
    ),
  );
  await s.ask();
  expect(sent).toBeGreaterThan(500);
  expect(sent).toBeLessThan(1_100);
});

it("a request does not fail when its client disconnects while there is no link", async () => {
  const client = new AbortController();
  const asked = new LongshoreError("LONGSHORE_CLOSED", "asked");
  const owner: CallOwner = { call: (name) => (name === "request" ? Promise.reject(client.abort(asked) ?? asked) : Promise.resolve()) };
  const forwarder = new Forwarder({ owner, makeId: idMaker(), clock: systemClock });
  await expect(
    forwarder.request(
      routeOf(() => ({ status: 200 })),
      requestOf({ gone: client.signal }),
    ),
  ).resolves.toEqual({ status: 503 });
});
