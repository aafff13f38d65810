// Nodes, with all events that can happen to them in random orders. The data is a counter that is protected by a fence, as in the database.

import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { seededRandom } from "../../test/faults/random.ts";
import { everyone } from "../core/actions.ts";
import { LongshoreError } from "../core/errors.ts";
import { idMaker } from "../core/ids.ts";
import type { Logger } from "../core/logger.ts";
import type { EventSink, HttpReply, HttpRequest, Route } from "../net/http/http.ts";
import { TestClock } from "../testing/clock.ts";
import type { Members } from "./members.ts";
import { ClusterNode, type OwnedData } from "./node.ts";

const quiet = () => {};
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet } as unknown as Logger;
const route: Route = { method: "POST", path: "/count", action: "run.start", body: "text", handle: () => ({ status: 200 }) };
const unavailable = () => new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "The store is lost.");

interface Data extends OwnedData {
  readonly node: string;
  readonly epoch: number;
}

/** The database: who owns the data, and which requests were performed. */
class Shared {
  epoch = 0;
  owner: Data | null = null;
  isDown = false;
  readonly performed = new Map<string, number>();
  readonly nodes = new Map<string, ClusterNode>();
  readonly makeId = idMaker();
  readonly clock = new TestClock();

  node(id: string): ClusterNode {
    const members: Members = {
      secret: new Uint8Array(32),
      look: async () => {
        await turn();
        if (this.isDown) throw unavailable();
        const { owner } = this;
        return { owner: owner === null ? null : { node: owner.node, url: "", epoch: owner.epoch }, isFree: owner === null };
      },
      announce: async () => {},
      list: async () => [],
      leave: async () => {},
      close: async () => {},
      address: null,
    };
    const node: ClusterNode = new ClusterNode({
      ...{ id, members, logger, makeId: this.makeId, clock: this.clock, random: () => 0.5 },
      takeOver: () => this.take(id),
      announce: async () => {},
      elsewhere: {
        request: (_route, request, begunAs) => this.elsewhere(begunAs ?? this.makeId(0), request),
        unary: async () => undefined,
        stream: async () => {},
        program: async () => undefined,
        ownerChanged: quiet,
        noNodeLeft: quiet,
      },
    });
    this.nodes.set(id, node);
    return node;
  }

  async take(id: string): Promise<Data> {
    await turn();
    if (this.isDown) throw unavailable();
    if (this.owner !== null) throw new LongshoreError("LONGSHORE_CONFLICT", "Another node was faster.");
    const epoch = ++this.epoch;
    const data: Data = {
      ...{ node: id, epoch },
      routes: new Map([["POST /count", { ...route, handle: ({ id }) => this.perform(data, id as string) }]]),
      methods: new Map(),
      program: async () => undefined,
      track: (_action, _request, work) => work(),
      lost: () => (this.owner === data ? null : unavailable()),
      close: async () => {
        await turn();
        if (this.owner === data) this.owner = null;
      },
    };
    this.owner = data;
    return data;
  }

  /** Performs the request once, also when it arrives several times, and answers only while it is the owner. */
  async perform(data: Data, request: string): Promise<HttpReply> {
    await turn();
    if (this.owner !== data) throw unavailable();
    this.performed.set(request, (this.performed.get(request) ?? 0) + (this.performed.has(request) ? 0 : 1));
    await turn();
    // It was committed, but this owner cannot know.
    if (this.owner !== data) throw unavailable();
    return { status: 200, body: `${request} ${data.epoch}` };
  }

  /** The link: waits for an owner, and sends the request to the next one when the owner is lost. */
  async elsewhere(request: string, { gone }: HttpRequest): Promise<HttpReply> {
    while (!gone.aborted) {
      const { owner } = this;
      if (owner !== null) {
        try {
          return await this.perform(owner, request);
        } catch {
          // The owner was lost meanwhile.
        }
      }
      await turn();
    }
    return { status: 499 };
  }
}

function requestOf(gone: AbortSignal): HttpRequest {
  const more = { stream: undefined as never, streamText: async () => "", query: new URLSearchParams() };
  return { method: "POST", path: "/count", params: {}, headers: {}, text: "", parsed: undefined, caller: everyone, gone, ...more };
}

/** Makes the nodes check the owner, and waits for everything that follows. */
async function pass(shared: Shared, turns = 12): Promise<void> {
  await shared.clock.advance(200);
  for (let at = 0; at < turns; at++) await turn();
}

it("ends with one owner, and performs and answers every request once, for any order of events", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed);
    const shared = new Shared();
    const live: ClusterNode[] = [];
    let made = 0;
    const add = async () => {
      const node = shared.node(`n${++made}`);
      const started = node.start();
      live.push(node);
      for (let at = 0; at < 50 && !node.isServing; at++) await pass(shared, 3);
      await started;
    };
    await add();
    const asked: Promise<HttpReply>[] = [];
    const gone = new AbortController();
    for (let step = 0; step < 40; step++) {
      const node = random.pick(live) as ClusterNode;
      const drawn = random.next();
      if (drawn < 0.4) asked.push(Promise.resolve(node.handle(route, requestOf(gone.signal))));
      else if (drawn < 0.5) shared.owner = null;
      else if (drawn < 0.6 && live.length < 4) await add();
      else if (drawn < 0.7 && live.length > 1) {
        live.splice(live.indexOf(node), 1);
        const resigned = node.resign();
        if (random.chance(0.5)) asked.push(Promise.resolve(node.handle(route, requestOf(gone.signal))));
        await pass(shared);
        await resigned;
        expect(node.state).not.toBe("owner");
        await node.close();
      } else await pass(shared, random.between(0, 12));
    }
    for (let at = 0; at < 5; at++) await pass(shared);
    const replies = await Promise.all(asked);
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
    const answered = replies.map(({ body }) => String(body).split(" ")[0]);
    expect(new Set(answered).size, `seed ${seed}`).toBe(asked.length);
    expect(shared.performed.size, `seed ${seed}`).toBe(asked.length);
    expect(live.filter(({ state }) => state === "owner").length).toBe(1);
    for (const node of live) await node.close();
    expect(shared.owner).toBe(null);
    gone.abort();
  }
});

it("resigning waits for a take-over in progress, and then hands over the data", async () => {
  const shared = new Shared();
  const other = await shared.take("another");
  const node = shared.node("n");
  const started = node.start();
  await pass(shared);
  await started;
  await other.close();
  void shared.clock.advance(200);
  while (node.state !== "taking over") await turn();
  await node.resign();
  expect(node.state).toBe("member");
  expect(shared.owner).toBe(null);
  await node.close();
});

it("two callers that make it step down both wait until the data is handed over", async () => {
  const shared = new Shared();
  const node = shared.node("n");
  await node.start();
  const first = node.resign();
  await node.resign();
  expect(shared.owner).toBe(null);
  await first;
  await node.close();
});

it("ends its event streams when it hands the data over, and their routes send no more", async () => {
  const shared = new Shared();
  const node = shared.node("n");
  await node.start();
  let given: EventSink | undefined;
  const data = shared.owner as Data;
  (data.routes as Map<string, Route>).set("POST /count", {
    ...route,
    handle: () => ({
      status: 200,
      events: (sink) => {
        given = sink;
      },
    }),
  });
  const { events } = await node.handle(route, requestOf(new AbortController().signal));
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
  };
  // Like a stream that has ended while its reader is still connected.
  events?.({ send: () => false, full: false, drained: async () => {}, end, gone: new AbortController().signal });
  expect([hasEnded, given?.gone.aborted]).toEqual([false, false]);
  await node.resign();
  expect([hasEnded, given?.gone.aborted]).toEqual([true, true]);
  await node.close();
});

it("a start that waits for an owner ends when the node closes", async () => {
  const shared = new Shared();
  const node = shared.node("n");
  // Another node holds the data, and is not in the list.
  shared.take = () => Promise.reject(new LongshoreError("LONGSHORE_CONFLICT", "taken"));
  const started = node.start();
  const refused = expect(started).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
  await pass(shared);
  await node.close();
  await refused;
});

it("keeps nothing in memory for event streams that have ended", async () => {
  const shared = new Shared();
  const node = shared.node("n");
  await node.start();
  const owner = shared.owner as Data;
  let ends = 0;
  const events: Route = { ...route, handle: () => ({ status: 200, events: (sink) => sink.end() }) };
  (owner.routes as Map<string, Route>).set("POST /count", events);
  const gone = new AbortController().signal;
  const sink: EventSink = { send: () => true, full: false, drained: async () => {}, end: () => ends++, gone };
  (await node.handle(route, requestOf(gone))).events?.(sink);
  await node.close();
  expect(ends).toBe(1);
});
