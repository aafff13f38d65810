// The attackers have no token and choose how a server with TLS makes its keys. With the slowest of the ways that OpenSSL knows, one handshake took
// 100 ms of the event loop. Fifty connections kept all requests waiting for seconds, and a thousand for minutes.

import { readFileSync } from "node:fs";
import { connect, type TLSSocket } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { groupOf, route, startServer } from "../support/http.ts";

const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), "utf8");
const tls = { cert: pem("cert"), key: pem("key") };

const groups = [groupOf("main", [route("GET /hello", () => ({ status: 200, body: "hello" }))])];

/** A client with only these ways. Resolves when the handshake has succeeded. */
function shake(port: number, ecdhCurve: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", ca: tls.cert, ecdhCurve, minVersion: "TLSv1.3" }, () => resolve(socket));
    socket.on("error", reject);
    onTestFinished(() => void socket.destroy());
  });
}

it.each(["ffdhe2048", "ffdhe8192", "P-521", "P-384"])("a client cannot choose %s", async (group) => {
  const { port } = await startServer({ groups, tls });
  await expect(shake(port, group)).rejects.toThrow(/alert/);
  expect((await shake(port, `${group}:P-256`)).getEphemeralKeyInfo()).toMatchObject({ name: "prime256v1" });
});

it.each(["X25519", "P-256"])("a client can choose %s", async (group) => {
  const { port } = await startServer({ groups, tls });
  expect((await shake(port, group)).authorized).toBe(true);
});
