// During an update, nodes of two neighbouring versions share a cluster. Here the other side has literal bytes of version 1, and our side
// speaks versions 1 and 2. A test fails when a field was renamed, removed or became required: then a cluster cannot be updated node by
// node.

import { createHmac } from "node:crypto";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { Forwarder } from "../../src/cluster/forwarder.ts";
import { spokenVersions } from "../../src/cluster/link/messages.ts";
import { everyone } from "../../src/core/actions.ts";
import { systemClock } from "../../src/core/clock.ts";
import { idMaker } from "../../src/core/ids.ts";
import { createLogger } from "../../src/core/logger.ts";
import type { HttpRequest, Route } from "../../src/net/http/http.ts";
import { secret, startNode, startOwner, type TestOwner } from "../support/link.ts";
import { openOwner, temporaryFolder } from "../support/twice-world.ts";
import { deferred } from "../support/until.ts";

const today = [1, 2];
const nonce = "ab".repeat(32);
const life = "0123456789abcdef";

const header = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const valueIn = (text: string) => JSON.parse(Buffer.from(/longshore-link: (\S+)\r\n/i.exec(text)?.[1] ?? "", "base64url").toString());

function frame(...messages: readonly unknown[]): Buffer {
  const text = Buffer.from(JSON.stringify(messages));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text]);
}

interface Shaken {
  readonly speaks: readonly number[];
  readonly node: string;
  readonly life: string;
  readonly owner: string;
  readonly epoch: string;
  readonly nonce: string;
}

function proof(role: "node" | "owner", hello: Shaken, welcome: { readonly version: number; readonly nonce: string }): string {
  const said = [hello.speaks, hello.node, hello.life, hello.owner, hello.epoch, hello.nonce, welcome.version, welcome.nonce];
  return createHmac("sha256", secret)
    .update(JSON.stringify(["longshore-link", role, ...said, "", ""]))
    .digest("hex");
}

/** What arrives on a socket: HTTP headers, then messages. Pings, which are empty frames, are left out. */
function reader(socket: Socket) {
  let bytes = Buffer.alloc(0);
  let wake = () => {};
  const messages: (readonly unknown[])[] = [];
  socket.on("data", (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    wake();
  });
  socket.on("close", () => wake());
  const more = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  return {
    async head(): Promise<string> {
      while (!bytes.includes("\r\n\r\n")) await more();
      const end = bytes.indexOf("\r\n\r\n") + 4;
      const text = bytes.toString("latin1", 0, end);
      bytes = bytes.subarray(end);
      return text;
    },
    async message(): Promise<readonly unknown[]> {
      for (;;) {
        const next = messages.shift();
        if (next !== undefined) return next;
        while (bytes.length < 4 || bytes.length < 4 + bytes.readUInt32BE(0)) {
          if (socket.destroyed) throw new Error("The link was cut.");
          await more();
        }
        const end = 4 + bytes.readUInt32BE(0);
        messages.push(...(JSON.parse(bytes.toString("utf8", 4, end)) as (readonly unknown[])[]));
        bytes = bytes.subarray(end);
      }
    },
  };
}

/** A node with literal bytes that has requested the upgrade. `more` are fields that only its version has. */
async function played(owner: TestOwner, speaks: readonly number[], more: object = {}) {
  const socket = createConnection(owner.http.port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  const hello = { speaks, node: "old", life, owner: owner.node, epoch: "", nonce, tls: false, ...more };
  socket.write(
    `GET /longshore/link HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: longshore-link\r\nlongshore-link: ${header(hello)}\r\n\r\n`,
  );
  const read = reader(socket);
  return { socket, read, hello, head: await read.head() };
}

/** The same node with an open link. */
async function linked(owner: TestOwner, speaks: readonly number[], more: object = {}) {
  const { socket, read, hello, head } = await played(owner, speaks, more);
  const welcome = valueIn(head) as { version: number; nonce: string };
  socket.write(frame([10, proof("node", hello, welcome)]));
  expect(await read.message()).toEqual([11, proof("owner", hello, welcome)]);
  let last = 0;
  return {
    version: welcome.version,
    async call(name: string, args: unknown, ...rest: readonly unknown[]): Promise<unknown> {
      const id = ++last;
      socket.write(frame([1, id, name, args, ...rest]));
      const [kind, of, value] = await read.message();
      expect([kind, of]).toEqual([2, id]);
      return value;
    },
  };
}

const caller = { scopes: ["operator"] };
const json = { "content-type": "application/json" };
const source = { name: "w", steps: [{ id: "a", task: "later", input: null }], output: null };
const ids = idMaker();
const newId = () => ids(Date.now());
const carried = (route: string, id: string, body: unknown) => ({
  ...{ route, path: route.split(" ")[1], params: {}, query: "", headers: json, caller, id },
  text: JSON.stringify(body),
});

it("an update is possible between neighbouring versions of the link", () => {
  const newest = spokenVersions.at(-1) as number;
  expect(spokenVersions).toEqual(newest === 1 ? [1] : [newest - 1, newest]);
});

it("an owner serves a node of the previous version, with the fields of that version", async () => {
  const data = await openOwner(temporaryFolder());
  const owner = await startOwner(data.performer, { speaks: today });
  const node = await linked(owner, [1]);
  expect(node.version).toBe(1);
  expect(await node.call("request", carried("POST /api/longshore/v1/definitions", newId(), { source }))).toMatchObject({ status: 201 });
  const start = carried("POST /api/longshore/v1/runs", newId(), { workflow: "w", input: {} });
  const started = (await node.call("request", start)) as { status: number; text: string };
  expect(started.status).toBe(201);
  // Both marks of a repeated request.
  expect(await node.call("request", start, 1)).toEqual(started);
  expect(await node.call("request", { ...start, isRepeat: true })).toEqual(started);
  const blob = carried("POST /api/longshore/v1/blobs", newId(), "");
  expect(await node.call("request", { ...blob, text: "", bytes: Buffer.from("abc").toString("base64") })).toMatchObject({
    ...{ status: 201, text: expect.stringContaining("ba7816bf") },
  });
  const health = { path: "/stepflow.v1.HealthService/HealthCheck", message: "", metadata: {}, caller, peer: "127.0.0.1:1", id: newId() };
  expect(await node.call("grpc", health)).toEqual({ message: expect.any(String) });
  const stored = { ...health, path: "/stepflow.v1.RunsService/GetRun", id: newId() };
  expect(await node.call("grpc", stored)).toEqual({
    status: { code: expect.any(Number), message: expect.any(String), details: expect.any(Array) },
  });
  const events = carried("GET /api/longshore/v1/events", newId(), "");
  const { events: stream } = (await node.call("request", { ...events, text: "" })) as { events: string };
  expect(await node.call("pull", stream)).toMatchObject({ pieces: expect.any(Array) });
  await node.call("drop", stream);
  await node.call("confirm", { delivered: [start.id], undelivered: [] });
  expect(await node.call("program", { verb: "tryWrite", given: [], id: newId(), isRepeat: false })).toBeUndefined();
});

it("an owner serves a node of the next version, and ignores unknown fields", async () => {
  const data = await openOwner(temporaryFolder());
  const owner = await startOwner(data.performer, { speaks: today });
  const node = await linked(owner, [2, 3], { region: "north" });
  expect(node.version).toBe(2);
  const define = { ...carried("POST /api/longshore/v1/definitions", newId(), { source }), hops: 2, caller: { ...caller, team: "a" } };
  expect(await node.call("request", define, 0, { trace: "t" })).toMatchObject({ status: 201 });
});

/** An owner with literal bytes. It answers calls with the results of `answer`. */
async function playedOwner(version: number, more: object, answer: (name: string, args: never) => unknown) {
  const heard: unknown[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    onTestFinished(() => void socket.destroy());
    const read = reader(socket);
    const serve = async () => {
      const hello = valueIn(await read.head()) as Shaken;
      heard.push(hello);
      const welcome = { version, nonce, ...more };
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: longshore-link\r\nlongshore-link: ${header(welcome)}\r\n\r\n`,
      );
      expect(await read.message()).toEqual([10, proof("node", hello, welcome)]);
      socket.write(frame([11, proof("owner", hello, welcome)]));
      for (;;) {
        const [, id, name, args] = await read.message();
        heard.push([name, args]);
        socket.write(frame([2, id, answer(name as string, args as never)]));
      }
    };
    // The node has disconnected.
    serve().catch(() => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { heard, owner: { node: "owner-1", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } };
}

const route: Route = { method: "POST", path: "/x/:id", action: "run.start", body: "text", handle: () => ({ status: 500 }) };
const request = (): HttpRequest =>
  ({
    ...{ method: "POST", path: "/x/1", params: { id: "1" }, query: new URLSearchParams("a=1"), headers: json, text: "{}" },
    ...{ parsed: undefined, caller: everyone, gone: new AbortController().signal },
  }) as unknown as HttpRequest;

it("a node works with an owner of the previous version, and sends the fields of that version", async () => {
  const { heard, owner } = await playedOwner(1, {}, () => ({ status: 201, headers: json, text: '{"id":1}' }));
  const node = startNode(() => owner, { speaks: today });
  const forwarder = new Forwarder({ owner: node, makeId: ids, clock: systemClock });
  expect(await forwarder.request(route, request())).toMatchObject({ status: 201, headers: json, body: '{"id":1}' });
  const [hello, call] = heard;
  expect(hello).toMatchObject({ node: "node-2", owner: "owner-1", epoch: "", tls: false, speaks: today });
  const sent = { route: "POST /x/:id", path: "/x/1", params: { id: "1" }, query: "a=1", headers: json, text: "{}", id: expect.any(String) };
  expect(call).toMatchObject(["request", { ...sent, caller }]);
});

it("a node works with an owner of the next version, and ignores unknown fields", async () => {
  const { owner } = await playedOwner(2, { region: "north" }, () => ({ status: 200, text: "ok", took: 1 }));
  const node = startNode(() => owner, { speaks: today });
  const forwarder = new Forwarder({ owner: node, makeId: ids, clock: systemClock });
  expect(await forwarder.request(route, request())).toMatchObject({ status: 200, body: "ok" });
});

it("a node two versions behind is refused, and both versions are named", async () => {
  const owner = await startOwner(undefined, { speaks: [2, 3] });
  const { head } = await played(owner, [1]);
  expect(head).toMatch(/^HTTP\/1.1 426 /);
  expect(valueIn(head)).toEqual({ speaks: [2, 3] });
  const reason = deferred<string>();
  const write = (line: string) => reason.resolve((JSON.parse(line) as { reason: string }).reason);
  const node = startNode(() => owner, { speaks: [1], logger: createLogger({ level: "debug", write, clock: { now: () => 0 } }) });
  const answer = expect(node.call("echo", 1)).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
  expect(await reason.promise).toBe("Node owner-1 speaks version 2, 3 of the link, and this node speaks 1; update one of them.");
  await Promise.all([node.close(), answer]);
});
