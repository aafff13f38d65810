// A stranger connects with TLS, chooses HTTP/1.1 in the handshake or nothing, and then sends the first bytes of HTTP/2. Node opens no
// session on such a connection. The server once read a field of the missing session: one connection without a token ended the process.

import { readFileSync } from "node:fs";
import { connect } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { serverStream, unary } from "../../src/net/grpc/service.ts";
import { channelTo, Echo } from "../support/grpc.ts";
import { groupOf, route, startServer } from "../support/http.ts";

const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), "utf8");
const tls = { cert: pem("cert"), key: pem("key") };
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const settings = "\0\0\0\x04\0\0\0\0\0";

it.each([
  ["that chose HTTP/1.1", { ALPNProtocols: ["http/1.1"] }],
  ["that chose no protocol", {}],
])("a client %s and speaks HTTP/2 loses its connection, and no other client does", async (_what, chosen) => {
  const methods = [unary(Echo.Say, "task.report", (message) => message), serverStream(Echo.Count, "server.health", () => {})];
  const server = await startServer({ groups: [groupOf("main", [route("GET /hello", () => ({ status: 200 }))])], methods, tls });
  const socket = connect({ port: server.port, host: "127.0.0.1", ca: tls.cert, ...chosen });
  onTestFinished(() => void socket.destroy());
  const closed = new Promise<string>((resolve) => {
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
  });
  socket.write(preface + settings, "latin1");
  expect(await closed).toBe("");
  const channel = channelTo(server.url, { tls: { ca: tls.cert } });
  expect(await channel.unary(Echo.Say, { text: "still here" })).toMatchObject({ text: "still here" });
});
