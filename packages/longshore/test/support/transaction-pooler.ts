// A pooler between a client and PostgreSQL, like PgBouncer in transaction mode: a connection of the pool belongs to a client for one
// transaction. Without
// passwords and without TLS.

import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";

export interface TransactionPooler {
  readonly port: number;
  close(): void;
}

/** A connection of the pool, and the messages of its PostgreSQL at the start. */
interface Pooled {
  readonly socket: Socket;
  readonly greeting: Buffer;
  client: Socket | null;
  /** Messages that are not complete yet. */
  rest: Buffer;
}

/** `fifo` gives out the connection that came back first. Otherwise the one that came back last, as PgBouncer does. */
export async function openPooler(serverPort: number, { fifo = false } = {}): Promise<TransactionPooler> {
  const sockets = new Set<Socket>();
  const idle: Pooled[] = [];
  let startup: Buffer | undefined;

  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    return socket;
  };

  const open = (message: Buffer): Promise<Pooled> =>
    new Promise((resolve) => {
      const socket = track(dial({ port: serverPort, host: "127.0.0.1" }));
      let seen = Buffer.alloc(0);
      const greet = (bytes: Buffer) => {
        seen = Buffer.concat([seen, bytes]);
        if (!endsReady(seen)) return;
        socket.off("data", greet);
        const pooled: Pooled = { socket, greeting: seen, client: null, rest: Buffer.alloc(0) };
        socket.on("data", (more) => passOn(pooled, more));
        resolve(pooled);
      };
      socket.on("data", greet);
      socket.write(message);
    });

  const passOn = (pooled: Pooled, bytes: Buffer) => {
    pooled.client?.write(bytes);
    pooled.rest = Buffer.concat([pooled.rest, bytes]);
    for (let length = lengthOf(pooled.rest); length !== null; length = lengthOf(pooled.rest)) {
      const isIdle = pooled.rest[0] === 0x5a && pooled.rest[5] === 0x49;
      pooled.rest = pooled.rest.subarray(length);
      if (!isIdle) continue;
      pooled.client = null;
      idle.push(pooled);
    }
  };

  const serve = (client: Socket) => {
    track(client);
    let begun = false;
    client.on("data", async (bytes) => {
      if (!begun) {
        begun = true;
        startup ??= bytes;
        const pooled = await open(startup);
        client.write(pooled.greeting);
        idle.push(pooled);
        return;
      }
      if (bytes[0] === 0x58) return void client.destroy();
      const mine = [...owned].find((pooled) => pooled.client === client) ?? (fifo ? idle.shift() : idle.pop());
      if (mine === undefined) throw new Error("the pool is empty");
      mine.client = client;
      owned.add(mine);
      mine.socket.write(bytes);
    });
  };

  const owned = new Set<Pooled>();
  const listener = createServer(serve);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    port: (listener.address() as AddressInfo).port,
    close() {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The length of the first message, when it is complete. */
function lengthOf(bytes: Buffer): number | null {
  if (bytes.byteLength < 5) return null;
  const length = 1 + bytes.readInt32BE(1);
  return bytes.byteLength < length ? null : length;
}

/** Whether the last message is ReadyForQuery: Z, its length 5, a state. */
function endsReady(bytes: Buffer): boolean {
  return bytes.subarray(-6, -1).equals(Buffer.from([0x5a, 0, 0, 0, 5]));
}
