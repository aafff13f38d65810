// Which programs get a link. Those with a wrong secret, a recorded handshake, another version or another owner do not, and neither does an
// attacker in the middle of TLS.

import { readFileSync } from "node:fs";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { RawClient } from "../../../test/support/http.ts";
import { secret, startNode, startOwner, type TestOwner } from "../../../test/support/link.ts";
import { deferred, until } from "../../../test/support/until.ts";
import { createLogger } from "../../core/logger.ts";
import { TestClock } from "../../testing/clock.ts";
import type { LinkClient, LinkClientOptions } from "./client.ts";
import type { LinkOwner } from "./dial.ts";
import { framesOf } from "./frames.ts";
import { headerOf, helloHeader, linkPath, linkUpgrade, newLife, newNonce, proofOf, type Welcome, welcomeIn } from "./proof.ts";

const other = new Uint8Array(32).fill(8);
const pem = (name: string) => readFileSync(new URL(`../../../test/fixtures/tls/${name}.pem`, import.meta.url), "utf8");
const tls = { cert: pem("cert"), key: pem("key") };

/** Tries once, and returns the reason of the failure. */
async function refusalOf(owner: LinkOwner, options: Partial<LinkClientOptions> = {}): Promise<string> {
  const failed = deferred<string>();
  const write = (line: string) => failed.resolve((JSON.parse(line) as { reason: string }).reason);
  const node = startNode(() => owner, { logger: createLogger({ level: "debug", write, clock: { now: () => 0 } }), ...options });
  const answer = expect(node.call("echo", 1)).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
  const reason = await failed.promise;
  expect(node.figures.connects).toBe(0);
  await Promise.all([node.close(), answer]);
  return reason;
}

function logged() {
  const lines: string[] = [];
  const logger = createLogger({ write: (line) => lines.push(line), clock: { now: () => 0 } });
  return { lines, logger };
}

/** A request for the upgrade, as bytes. */
function upgradeTo(owner: TestOwner, more: object = {}): string {
  const hello = { speaks: [1], node: "n", life: newLife(), owner: owner.node, epoch: "", nonce: newNonce(), tls: false, ...more };
  return `GET ${linkPath} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: ${linkUpgrade}\r\n${helloHeader}: ${headerOf(hello as never)}\r\n\r\n`;
}

describe("a wrong proof", () => {
  it("of the node ends the connection without an explanation, and is logged once a minute", async () => {
    const clock = new TestClock();
    const { lines, logger } = logged();
    const owner = await startOwner(undefined, { secret: other, logger, clock });
    expect(await refusalOf(owner)).toContain("ended the handshake, which it does for a wrong proof");
    await refusalOf(owner);
    expect(owner.link.figures).toMatchObject({ links: 0, calls: 0, strangers: 2 });
    expect(lines.filter((line) => line.includes("wrong proof"))).toHaveLength(1);
    await clock.advance(60_000);
    await refusalOf(owner);
    expect(lines.filter((line) => line.includes("wrong proof"))).toHaveLength(2);
  });

  it("of the owner is not accepted", async () => {
    // A server that accepts everything, like an attacker's program on a stolen address.
    const owner = await startOwner();
    const fake = createServer((socket) => {
      socket.once("data", () => {
        const welcome = headerOf({ version: 1, nonce: newNonce() });
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${linkUpgrade}\r\n${helloHeader}: ${welcome}\r\n\r\n`,
        );
        socket.write(framesOf([JSON.stringify([11, "0".repeat(64)])], 1_000)[0] as Buffer);
      });
      socket.on("error", () => undefined);
    });
    const url = await listening(fake);
    expect(await refusalOf({ node: owner.node, url })).toContain("does not have the secret of this cluster");
  });

  it("from a recorded handshake is refused", async () => {
    const owner = await startOwner();
    const recorded: Buffer[] = [];
    const spy = createServer((near) => {
      const far = createConnection(owner.http.port, "127.0.0.1");
      near.on("data", (bytes) => {
        recorded.push(bytes);
        far.write(bytes);
      });
      far.on("data", (bytes) => near.write(bytes));
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const)
        from.on("close", () => to.destroy()).on("error", () => undefined);
    });
    const node = startNode(() => ({ node: owner.node, url: spyUrl }));
    const spyUrl = await listening(spy);
    expect(await node.call("echo", 1)).toBe(1);
    await node.close();
    expect(recorded.length).toBeGreaterThan(2);
    const client = new RawClient(owner.http);
    client.socket.write(recorded[0] as Buffer);
    await client.until("\r\n\r\n");
    for (const bytes of recorded.slice(1)) client.socket.write(bytes);
    await client.closed();
    expect(owner.link.figures).toMatchObject({ strangers: 1, calls: 1 });
  });

  it("for the other role is refused: the owner's own proof cannot be sent back to it", async () => {
    const owner = await startOwner();
    for (const [role, links] of [
      ["owner", 0],
      ["node", 1],
    ] as const) {
      const hello = { speaks: [1], node: "n", life: newLife(), owner: owner.node, epoch: "", nonce: newNonce(), tls: false };
      const client = new RawClient(owner.http).send(upgradeTo(owner, hello));
      const [, header] = /longshore-link: (\S+)\r\n\r\n/.exec(await client.until("\r\n\r\n")) ?? [];
      const proof = proofOf(secret, role, hello, welcomeIn(header) as Welcome, "");
      client.socket.write(framesOf([JSON.stringify([10, proof])], 1_000)[0] as Buffer);
      if (role === "node") await until(() => owner.link.figures.links === 1);
      // Only the response to the upgrade.
      else expect((await client.closed()).split("\r\n\r\n")[1]).toBe("");
      expect(owner.link.figures.links).toBe(links);
    }
  });
});

describe("before the proof", () => {
  it.each([
    ["a call", [1, 1, "echo", 1]],
    ["a stream", [5, 1, "changes"]],
    ["a message of no kind", ["x"]],
  ])("%s ends the connection", async (_what, message) => {
    const owner = await startOwner();
    const client = new RawClient(owner.http).send(upgradeTo(owner));
    await client.until("\r\n\r\n");
    client.socket.write(framesOf([JSON.stringify(message)], 1_000)[0] as Buffer);
    await client.closed();
    expect(owner.link.figures).toMatchObject({ calls: 0, links: 0, streams: 0 });
  });

  it("a frame that is larger than a proof ends the connection", async () => {
    const owner = await startOwner();
    const client = new RawClient(owner.http).send(upgradeTo(owner));
    await client.until("\r\n\r\n");
    client.socket.write(Buffer.from([0, 1, 0, 0]));
    await client.closed();
  });

  it("connections that never finish the handshake make room for a node", async () => {
    const owner = await startOwner(undefined, { limits: { handshakes: 2 } });
    const strangers = [];
    for (let at = 0; at < 3; at++) {
      const stranger = new RawClient(owner.http).send(upgradeTo(owner));
      await stranger.until("\r\n\r\n");
      strangers.push(stranger);
    }
    await strangers[0]?.closed();
    expect(await startNode(() => owner).call("echo", 1)).toBe(1);
    await strangers[1]?.closed();
    expect(strangers[2]?.socket.destroyed).toBe(false);
  });

  it("the client and the server each have five seconds", async () => {
    const clock = new TestClock();
    const owner = await startOwner(undefined, { clock });
    const client = new RawClient(owner.http).send(upgradeTo(owner));
    await client.until("\r\n\r\n");
    await clock.advance(4_999);
    expect(client.socket.destroyed).toBe(false);
    await clock.advance(1);
    await client.closed();

    const accepted: Socket[] = [];
    const silent = createServer((socket) => {
      accepted.push(socket.on("error", () => undefined).resume());
    });
    const url = await listening(silent);
    const node = startNode(() => ({ node: "owner-1", url }), { clock });
    const answer = node.call("echo", 1).catch((error: unknown) => error);
    await until(() => accepted.length === 1);
    await clock.advance(5_000);
    await until(() => accepted[0]?.destroyed === true);
    await clock.advance(5_000);
    expect(await answer).toMatchObject({ message: expect.stringContaining("did not complete the handshake within 5000 ms") });
  });

  it.each([
    ["no hello", `GET ${linkPath} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: ${linkUpgrade}\r\n\r\n`],
    ["another protocol", `GET ${linkPath} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`],
    [
      "a hello that is not JSON",
      `GET ${linkPath} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: ${linkUpgrade}\r\n${helloHeader}: xx\r\n\r\n`,
    ],
  ])("%s is answered with 400", async (_what, text) => {
    const owner = await startOwner();
    expect(await new RawClient(owner.http).send(text).closed()).toContain("HTTP/1.1 400 ");
  });
});

describe("a refusal with a reason", () => {
  it("is sent when the versions differ", async () => {
    const owner = await startOwner(undefined, { speaks: [2, 3] });
    expect(await refusalOf(owner)).toContain("Node owner-1 speaks version 2, 3 of the link, and this node speaks 1; update one of them.");
  });

  it("is sent by a node that owns nothing, by an owner of another epoch, and by another node than expected", async () => {
    let epoch: string | null = null;
    const owner = await startOwner(undefined, { epoch: () => epoch });
    const { node, url } = owner;
    expect(await refusalOf({ node, url, epoch: "7" })).toContain("Node owner-1 does not own the data.");
    epoch = "8";
    expect(await refusalOf({ node, url, epoch: "7" })).toContain("Node owner-1 owns the data in epoch 8, and not 7.");
    expect(await refusalOf({ node: "owner-9", url, epoch: "8" })).toContain("This is node owner-1, and not owner-9.");
    const right = startNode(() => ({ node, url, epoch: "8" }));
    expect(await right.call("echo", 1)).toBe(1);
  });

  it("is sent by a server without a link, and when the number of links is reached", async () => {
    const owner = await startOwner(undefined, {}, { upgrade: { path: "/else", take: () => undefined } });
    expect(await refusalOf(owner)).toContain("answered 404 and opened no link");
    const full = await startOwner(undefined, { limits: { links: 0 } });
    expect(await refusalOf(full)).toContain("answered 503");
    const closed = await startOwner();
    closed.link.close();
    expect(await refusalOf(closed)).toContain("answered 503");
  });
});

it("the highest version that both sides speak is used", async () => {
  const owner = await startOwner(undefined, { speaks: [1, 2, 3] });
  const client = new RawClient(owner.http).send(upgradeTo(owner, { speaks: [0, 2, 1] }));
  const [, header = ""] = /longshore-link: (\S+)\r\n\r\n/.exec(await client.until("\r\n\r\n")) ?? [];
  expect(JSON.parse(Buffer.from(header, "base64url").toString())).toMatchObject({ version: 2 });
});

describe("after the proof", () => {
  it.each([
    ["a kind that does not exist", [99, 1]],
    ["a call without a number", [1, "1", "echo"]],
    ["a call without a name", [1, 7]],
    ["a message that is not an array", 5],
  ])("%s cuts the link of the node that sends it", async (_what, message) => {
    const owner = await startOwner();
    const { node, inject } = await nodeWithRawFrames(owner);
    inject(JSON.stringify(message));
    await until(() => owner.link.figures.links === 0);
    expect(await node.call("echo", 2)).toBe(2);
    expect(node.figures.connects).toBe(2);
  });
});

/** A node; the test can send additional frames on its connection. */
async function nodeWithRawFrames(owner: TestOwner): Promise<{ node: LinkClient; inject: (text: string) => void }> {
  let last: Socket | undefined;
  const proxy = createServer((near) => {
    const far = createConnection(owner.http.port, "127.0.0.1");
    last = far;
    joinSockets(near, far);
  });
  const url = await listening(proxy);
  const node = startNode(() => ({ node: owner.node, url }));
  await node.call("echo", 1);
  return { node, inject: (text) => void last?.write(framesOf([text], 1_000)[0] as Buffer) };
}

describe("with TLS", () => {
  it("a link works with a self-signed certificate, trusted or not", async () => {
    const owner = await startOwner(undefined, {}, { tls });
    expect(owner.url).toContain("https:");
    expect(await startNode(() => owner).call("echo", "ü".repeat(100_000))).toBe("ü".repeat(100_000));
    expect(await startNode(() => owner, { tls: { ca: tls.cert } }).call("echo", 2)).toBe(2);
  });

  it("an attacker in the middle with another certificate is detected", async () => {
    const { lines, logger } = logged();
    const owner = await startOwner(undefined, { logger }, { tls });
    const middle = createTlsServer(tls, (near) => {
      const far = connectTls({ port: owner.http.port, host: "127.0.0.1", rejectUnauthorized: false });
      joinSockets(near, far);
    });
    const url = (await listening(middle)).replace("http:", "https:");
    expect(await refusalOf({ node: owner.node, url })).toContain("ended the handshake");
    expect(owner.link.figures).toMatchObject({ links: 0, calls: 0 });
    expect(lines.join("\n")).toContain("a program between the two sides reads the connection");
  });

  it("a proxy that ends TLS is detected and named", async () => {
    const { lines, logger } = logged();
    const owner = await startOwner(undefined, { logger });
    const middle = createTlsServer(tls, (near) => {
      const far = createConnection(owner.http.port, "127.0.0.1");
      joinSockets(near, far);
    });
    const url = (await listening(middle)).replace("http:", "https:");
    await refusalOf({ node: owner.node, url });
    expect(lines.join("\n")).toContain("a program between them ends TLS");
  });
});

/** Passes everything between the two; the end of one ends the other. */
function joinSockets(near: Socket, far: Socket): void {
  near.pipe(far).pipe(near);
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const)
    from.on("close", () => to.destroy()).on("error", () => undefined);
}

async function listening(server: {
  listen(port: number, host: string, done: () => void): unknown;
  address(): unknown;
  close(): unknown;
}): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("a secret of another length is refused at once", () => {
  expect(() => startNode(() => null, { secret: secret.subarray(1) })).toThrow("has 31 bytes, expected 32");
});
