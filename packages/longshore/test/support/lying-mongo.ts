// A server with the part of MongoDB's wire protocol that our calls need. The test chooses the response to each command, such as that of a
// broken or overloaded MongoDB, or of a different program. Without a script it is an empty database that stores nothing.

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { BSON, Long } from "mongodb";
import { onTestFinished } from "vitest";

type Command = { readonly [field: string]: unknown };

/** What to do instead of an answer. */
export type Lie = "silence" | "hang up";

/** The answer to a command; undefined for the usual one. */
export type Script = (name: string, command: Command) => Command | Lie | undefined;

export interface LyingMongo {
  readonly url: string;
  /** How often each command came, by its name and its collection: `find artifacts`. */
  readonly counts: ReadonlyMap<string, number>;
  /** Resolves when the command has come this often. */
  came(command: string, times?: number): Promise<void>;
}

export async function lyingMongo(script: Script): Promise<LyingMongo> {
  const counts = new Map<string, number>();
  let awaited: { command: string; times: number; resolve: () => void }[] = [];
  const sockets = new Set<Socket>();
  const receive = (socket: Socket, message: Buffer) => {
    const command = commandIn(message);
    const [name = ""] = Object.keys(command);
    const place = command.collection ?? command[name];
    const answer = script(name, command) ?? usual(name, command);
    if (answer === "hang up") socket.destroy();
    else if (answer !== "silence") socket.write(framed(message, answer));
    const key = typeof place === "string" ? `${name} ${place}` : name;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    awaited = awaited.filter((one) => (counts.get(one.command) ?? 0) < one.times || one.resolve());
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    let held = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (piece) => {
      held = Buffer.concat([held, piece]);
      while (held.length >= 16 && held.length >= held.readInt32LE(0)) {
        const length = held.readInt32LE(0);
        receive(socket, held.subarray(0, length));
        held = held.subarray(length);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}/flowkit`,
    counts,
    came: (command, times = 1) =>
      new Promise((resolve) => {
        if ((counts.get(command) ?? 0) >= times) resolve();
        else awaited.push({ command, times, resolve });
      }),
  };
}

/** One answer to a search. With `more`, another one follows. */
export function found(collection: unknown, documents: readonly Command[], { more = false, first = true } = {}): Command {
  const batch = { [first ? "firstBatch" : "nextBatch"]: documents };
  return { ok: 1, cursor: { id: Long.fromNumber(more ? 7 : 0), ns: `flowkit.${collection}`, ...batch } };
}

function usual(name: string, command: Command): Command {
  const place = command[name];
  if (name === "find") return found(place, []);
  if (name === "aggregate") return found(place, [{ n: 0 }]);
  if (name === "insert") return { ok: 1, n: (command.documents as unknown[]).length };
  if (name === "update") return { ok: 1, n: (command.updates as unknown[]).length, nModified: 0 };
  if (name === "delete") return { ok: 1, n: 0 };
  if (!/^(hello|ismaster)$/i.test(name)) return { ok: 1 };
  const sizes = { maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000 };
  return { ok: 1, ismaster: true, isWritablePrimary: true, minWireVersion: 0, maxWireVersion: 21, readOnly: false, ...sizes };
}

const [opReply, opQuery, opMessage] = [1, 2004, 2013];

/** OP_QUERY, which greets, and OP_MSG with its sections: a document, or a named list of them. */
function commandIn(message: Buffer): Command {
  const options = { allowObjectSmallerThanBufferSize: true };
  if (message.readInt32LE(12) === opQuery) return BSON.deserialize(message.subarray(message.indexOf(0, 20) + 9), options);
  const command: { [field: string]: unknown } = {};
  for (let at = 20; at < message.length; ) {
    const isList = message[at] === 1;
    const end = at + 1 + message.readInt32LE(at + 1);
    if (!isList) Object.assign(command, BSON.deserialize(message.subarray(at + 1, end), options));
    else {
      const nameEnd = message.indexOf(0, at + 5);
      const list: unknown[] = [];
      for (let from = nameEnd + 1; from < end; from += message.readInt32LE(from))
        list.push(BSON.deserialize(message.subarray(from), options));
      command[message.toString("utf8", at + 5, nameEnd)] = list;
    }
    at = end;
  }
  return command;
}

function framed(request: Buffer, answer: Command): Buffer {
  const isQuery = request.readInt32LE(12) === opQuery;
  const head = Buffer.alloc(isQuery ? 36 : 21);
  const body = BSON.serialize(answer);
  head.writeInt32LE(head.length + body.length, 0);
  head.writeInt32LE(request.readInt32LE(4), 8);
  head.writeInt32LE(isQuery ? opReply : opMessage, 12);
  if (isQuery) head.writeInt32LE(1, 32);
  return Buffer.concat([head, body]);
}
