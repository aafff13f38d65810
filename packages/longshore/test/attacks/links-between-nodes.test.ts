// The attacker reaches the port of the owner, or holds the cluster's secret and uses the link in ways that our nodes do not. This must not
// end the owner, use its memory without a limit, or affect other nodes. Or the attacker holds a read token and follows thousands of runs
// through a node that stops reading, or dies. This must not hold up the owner.

import { connect } from "node:net";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import type { LinkClient } from "../../src/cluster/link/client.ts";
import { BadFrame, FrameReader } from "../../src/cluster/link/frames.ts";
import { endedAtOnce, type LinkLimits } from "../../src/cluster/link/limits.ts";
import type { LinkEnd } from "../../src/cluster/link/service.ts";
import { Performer } from "../../src/cluster/performer.ts";
import { ReplyStreams } from "../../src/cluster/reply-streams.ts";
import { systemClock } from "../../src/core/clock.ts";
import { idMaker } from "../../src/core/ids.ts";
import { RequestIds } from "../../src/core/request-ids.ts";
import type { Route } from "../../src/net/http/http.ts";
import { startNode, startOwner } from "../support/link.ts";
import { countTurns } from "../support/turn-count.ts";
import { deferred, until } from "../support/until.ts";

async function setup() {
  let read = 0;
  const routes: Route[] = [
    {
      method: "POST",
      path: "/endless",
      action: "run.read",
      body: "none",
      openEnded: true,
      handle: () => ({ status: 200, body: Readable.from(endless()) }),
    },
    { method: "POST", path: "/unread", action: "blob.read", body: "stream", handle: () => new Promise(() => {}) },
    { method: "POST", path: "/hello", action: "run.read", body: "text", handle: () => ({ status: 200, body: "hello" }) },
  ];
  async function* endless() {
    for (;;) {
      read++;
      yield Buffer.alloc(65_536);
    }
  }
  const performer = new Performer({
    ...{ table: { groups: [{ name: "test", routes, refuse: () => ({ status: 500 }) }], methods: [] }, clock: systemClock },
    ...{ ids: new RequestIds(idMaker()), program: async () => undefined, isOver: () => false },
    answers: { answer: async () => null, keepAnswer: async () => {} },
  });
  const owner = await startOwner(performer);
  const bad = startNode(() => owner, { node: "bad", limits: { retryMs: 5, retryMsMax: 5 } });
  const good = startNode(() => owner, { node: "good" });
  const carried = (path: string, more: object = {}) => ({
    ...{ route: `POST ${path}`, path, params: {}, query: "", headers: {}, text: "", caller: { scopes: [] }, id: "id" },
    ...more,
  });
  const hello = async () => expect(await good.call("request", carried("/hello", { id: "other" }))).toMatchObject({ text: "hello" });
  return { owner, bad, carried, hello, read: () => read };
}

it("calls that no node sends are refused, each separately", async () => {
  const { bad, carried, hello } = await setup();
  const odd: [string, unknown][] = [
    ...([
      ["request", undefined],
      ["request", null],
      ["request", 7],
      ["request", {}],
      ["request", carried("/none")],
    ] as [string, unknown][]),
    ...([
      ["request", carried("/hello", { caller: undefined })],
      ["grpc", { path: "/no" }],
      ["pull", 1],
      ["pull", "__proto__"],
    ] as [string, unknown][]),
    ...([
      ["piece", null],
      ["confirm", {}],
      ["program", { verb: "handle", given: ["constructor", "constructor", ["x"]] }],
      ["toString", {}],
    ] as [string, unknown][]),
  ];
  for (const [name, args] of odd) await bad.call(name, args).catch((error: Error) => expect(error).toBeInstanceOf(Error));
  await hello();
});

it("when a node fetches nothing, the owner reads only a few pieces of a body", async () => {
  const { bad, carried, hello, read } = await setup();
  await bad.call("request", carried("/endless"));
  await hello();
  expect(read()).toBeLessThan(40);
});

it("bodies that no route reads are limited in bytes and in number, and end with their link", async () => {
  const { owner, bad, carried, hello } = await setup();
  void bad.call("request", carried("/unread", { upload: "u" }), { repeat: false }).catch(() => {});
  const bytes = Buffer.alloc(262_144).toString("base64");
  // Our node waits until a piece is accepted. Here all pieces must get an answer, because the body is dropped.
  await Promise.all(Array.from({ length: 64 }, () => bad.call("piece", { upload: "u", bytes })));
  const refused = Array.from({ length: 1_010 }, (_, at) =>
    bad
      .call("request", carried("/unread", { upload: `u${at}`, id: `u${at}` }), { repeat: false })
      .catch((error: { code: string }) => error.code),
  );
  expect(await Promise.race(refused)).toBe("LONGSHORE_LIMIT");
  owner.link.cut();
  await Promise.all(refused);
  await hello();
});

it.each([
  ["values", "[],"],
  ["levels", "["],
])("a frame with too many %s is refused while it arrives, before it is parsed", (what, unit) => {
  const size = 67_108_000;
  const head = Buffer.alloc(4);
  head.writeUInt32BE(size);
  const reader = new FrameReader(67_108_864);
  const piece = Buffer.from(unit.repeat(30_000));
  reader.take(Buffer.concat([head, Buffer.from("[")]), () => {});
  let sent = 0;
  const send = () => {
    for (; sent < size; sent += piece.length) reader.take(piece, () => {});
  };
  expect(send).toThrow(new BadFrame(`A frame has more than ${what === "values" ? 1_048_576 : 10_000} ${what}.`));
  expect(sent).toBeLessThan(size / 20);
});

it("a call with too many values is refused on its own node, which would send it again without an end", async () => {
  const { bad, hello } = await setup();
  const given = Array.from({ length: 300_000 }, () => []);
  await expect(bad.call("program", { verb: "define", given, id: "id" })).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
  await hello();
});

/** An owner whose calls all end together, each with an answer of this many characters. It counts the answers that it makes. */
async function endingTogether(chars: number, limits: Partial<LinkLimits> = {}) {
  const gate = deferred<void>();
  const made = countTurns();
  let begun = 0;
  const answer = {
    text: "x".repeat(chars),
    toJSON() {
      made.add();
      return { text: this.text };
    },
  };
  const owner = await startOwner(
    {
      async call() {
        begun++;
        await gate.promise;
        return answer;
      },
      open: () => () => {},
    },
    { limits },
  );
  const callAll = async (node: LinkClient, many: number) => {
    const calls = Array.from({ length: many }, () => node.call("read", {}, { repeat: false }).catch(() => "refused"));
    await until(() => begun === many);
    gate.resolve();
    return Promise.all(calls);
  };
  return { owner, made, callAll };
}

it("a node whose calls end together with more than it may leave unread gets no more answers", async () => {
  const { owner, made, callAll } = await endingTogether(10_000, { sendingBytes: 1_000_000 });
  expect(
    await callAll(
      startNode(() => owner),
      1_000,
    ),
  ).toContain("refused");
  expect(made.total).toBeLessThanOrEqual(101);
});

it.each([
  ["long", 262_144, 200, 4],
  ["small", 10, 3_000, 1_024],
])("%s answers of calls that end together are made over several turns, and all arrive", async (_, chars, many, perTurn) => {
  const { owner, made, callAll } = await endingTogether(chars);
  const answers = await callAll(
    startNode(() => owner),
    many,
  );
  expect(answers.filter((answer) => (answer as { text: string }).text?.length === chars)).toHaveLength(many);
  // The end of one turn and the begin of the next may fall between two looks.
  expect(made.most).toBeLessThanOrEqual(2 * perTurn);
});

it("bytes that are not a handshake end only their own connection", async () => {
  const { owner, hello } = await setup();
  await hello();
  const { hostname, port } = new URL(owner.url);
  const heads = ["", "longshore-link: e30\r\n", `longshore-link: ${"A".repeat(4_000)}\r\n`];
  for (const head of heads) {
    const socket = connect(Number(port), hostname);
    const answer = await new Promise<string>((resolve) => {
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk;
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(text));
      socket.end(
        `GET /longshore/link HTTP/1.1\r\nhost: ${hostname}:${port}\r\nconnection: upgrade\r\nupgrade: longshore-link\r\n${head}\r\n\0\0\0\0`,
      );
    });
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
  }
  await hello();
});

it("readers of a node that begin to read at once get what waits for them over several turns", async () => {
  const streams = new ReplyStreams(systemClock);
  const link: LinkEnd = { isOver: false };
  const names = Array.from({ length: 40 }, (_, at) => `s${at}`);
  const texts = Array.from({ length: 8 }, () => "x".repeat(100_000));
  for (const name of names) {
    const stream = streams.add(name, link);
    for (const text of texts) void stream.send(text, text.length);
  }
  const turns = countTurns();
  const { signal } = new AbortController();
  const read = async (name: string) => {
    const all: unknown[] = [];
    while (all.length < texts.length) {
      const { pieces } = await streams.pull(name, signal);
      for (const piece of pieces) {
        all.push(piece);
        turns.add();
      }
    }
    return all;
  };
  expect(await Promise.all(names.map(read))).toEqual(names.map(() => texts));
  // Two million characters in a turn, where the end of one and the begin of the next may fall between two looks.
  expect(turns.most).toBeLessThan(50);
  streams.close();
});

it("a node that is lost with thousands of calls and streams has few of them ended in a turn", async () => {
  const turns = countTurns();
  let begun = 0;
  const owner = await startOwner({
    call: (_name, _args, { signal }) => {
      begun++;
      signal.addEventListener("abort", () => turns.add());
      return new Promise(() => {});
    },
    open() {
      begun++;
      return () => turns.add();
    },
  });
  const node = startNode(() => owner, { node: "lost" });
  const many = 500;
  for (let at = 0; at < many; at++) {
    void node.call("wait", {}, { repeat: false }).catch(() => {});
    node.open("follow", {}, { event() {} });
  }
  await until(() => begun === 2 * many);
  owner.link.cut();
  await until(() => turns.total === 2 * many);
  expect(turns.most).toBeLessThanOrEqual(4 * endedAtOnce);
});
