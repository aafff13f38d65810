import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { CLIENTS, openConnection } from "./http-connection.ts";

const servers: Server[] = [];
const sockets = new Set<Socket>();

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

/** Answers each request with what `answer` writes, as soon as the last line of the request has arrived. */
async function serve(answer: (request: string, socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("data", (data) => answer(data.toString(), socket));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe.each(CLIENTS)("the %s connection", (client) => {
  it("joins a response that arrives in pieces, and reads the next one from the same socket", async () => {
    let requests = 0;
    const url = await serve((_, socket) => {
      requests++;
      const pieces = ["HTTP/1.1 2", "01 Created\r\nContent-Le", "ngth: 4\r\n", "\r\nnu", "ll"];
      const next = () => {
        const piece = pieces.shift();
        if (piece !== undefined) socket.write(piece, () => setImmediate(next));
      };
      next();
    });
    const connection = await openConnection(url, client);
    expect(await connection.request("POST", "/a", "{}")).toEqual({ status: 201, body: "null" });
    expect(await connection.request("GET", "/b")).toEqual({ status: 201, body: "null" });
    expect(requests).toBe(2);
    expect(sockets.size).toBe(1);
    connection.close();
  });

  it("sends the length of the body in bytes", async () => {
    let seen = "";
    const url = await serve((request, socket) => {
      seen += request;
      if (seen.includes("é")) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    const connection = await openConnection(url, client);
    expect(await connection.request("POST", "/", '"é"')).toEqual({ status: 200, body: "" });
    expect(seen.toLowerCase()).toContain("content-length: 4\r\n");
    connection.close();
  });

  it("refuses a request when the server closes the connection", async () => {
    const url = await serve((_, socket) => socket.destroy());
    const connection = await openConnection(url, client);
    await expect(connection.request("GET", "/")).rejects.toThrow();
    connection.close();
  });
});
