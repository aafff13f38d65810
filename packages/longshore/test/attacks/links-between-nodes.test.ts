// The attacker reaches the port of the owner, or holds the cluster's secret and uses the link in ways that our nodes do not. This must not
// end the owner, use its memory without a limit, or affect other nodes.

import { connect } from "node:net";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { Performer } from "../../src/cluster/performer.ts";
import { systemClock } from "../../src/core/clock.ts";
import { idMaker } from "../../src/core/ids.ts";
import { RequestIds } from "../../src/core/request-ids.ts";
import type { Route } from "../../src/net/http/http.ts";
import { startNode, startOwner } from "../support/link.ts";

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
