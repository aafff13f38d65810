// A server that greets like NATS and sends what its test has scripted.

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface Published {
  readonly subject: string;
  readonly reply: string;
  /** Sends to the subject of the answer; with `status` as a message of the server itself. */
  answer(payload: string, status?: string): void;
  /** Sends bytes that are no message. */
  raw(text: string): void;
}

export async function lyingNats(script: (message: Published) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const subscriptions: { subject: string; id: string }[] = [];
    const raw = (text: string) => void socket.write(text);
    raw(
      `INFO ${JSON.stringify({ server_id: "s", version: "2.10.0", proto: 1, headers: true, max_payload: 1_048_576, jetstream: true })}\r\n`,
    );
    const publish = (subject: string, reply: string) => {
      const answer = (payload: string, status?: string) => {
        const found = subscriptions.find((each) => reply.startsWith(each.subject.replace(/[*>]$/, "")));
        const head = status === undefined ? "" : `NATS/1.0 ${status}\r\n\r\n`;
        const sizes = status === undefined ? `${payload.length}` : `${head.length} ${head.length + payload.length}`;
        raw(`${status === undefined ? "MSG" : "HMSG"} ${reply} ${found?.id} ${sizes}\r\n${head}${payload}\r\n`);
      };
      script({ subject, reply, answer, raw });
    };
    socket.on("error", () => {});
    let held = "";
    socket.on("data", (piece) => {
      held += piece.toString("latin1");
      for (let end = held.indexOf("\r\n"); end >= 0; end = held.indexOf("\r\n")) {
        const [verb, ...words] = held.slice(0, end).split(" ");
        const isMessage = verb === "PUB" || verb === "HPUB";
        const next = end + 2 + (isMessage ? Number(words.at(-1)) + 2 : 0);
        if (held.length < next) return;
        held = held.slice(next);
        if (verb === "PING") raw("PONG\r\n");
        else if (verb === "SUB") subscriptions.push({ subject: words[0] as string, id: words.at(-1) as string });
        else if (isMessage) publish(words[0] as string, words.length > (verb === "PUB" ? 2 : 3) ? (words[1] as string) : "");
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `nats://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
