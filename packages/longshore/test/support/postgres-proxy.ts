// The way to PostgreSQL, on which what the writing connection sends or receives can be lost.

import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";

/** What happens to the next message of the writing connection; the connection is reset then. */
export type Loss =
  /** It never arrives. */
  | "request"
  /** It is carried out, and the response never arrives. */
  | "response"
  /** It arrives when `deliver` is called. */
  | "late request";

export interface PostgresProxy {
  readonly port: number;
  lose(next: Loss): void;
  /** Lets a late request arrive; resolves when the server has responded to it. */
  deliver(): Promise<void>;
  close(): void;
}

export async function openProxy(serverPort: number): Promise<PostgresProxy> {
  let loss: Loss | null = null;
  let late: (() => Promise<void>) | null = null;
  const sockets = new Set<Socket>();

  const join = (outside: Socket) => {
    const inside = dial({ port: serverPort, host: "127.0.0.1", noDelay: true });
    for (const socket of [outside, inside]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    let writes = false;
    let holdsBack = false;
    outside.on("data", (bytes) => {
      writes ||= bytes.includes("longshore write");
      const now = writes && !bytes.includes("longshore write") ? loss : null;
      if (now !== null) loss = null;
      if (now === null) inside.write(bytes);
      else if (now === "response") {
        holdsBack = true;
        inside.write(bytes);
      } else {
        outside.resetAndDestroy();
        if (now === "request") inside.resetAndDestroy();
        else late = () => responded(inside, bytes);
      }
    });
    inside.on("data", (bytes) => {
      if (holdsBack) {
        outside.resetAndDestroy();
        inside.resetAndDestroy();
      } else outside.write(bytes);
    });
    outside.on("close", () => {
      if (late === null) inside.destroy();
    });
    inside.on("close", () => outside.destroy());
  };

  const listener = createServer({ noDelay: true }, join);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    port: (listener.address() as AddressInfo).port,
    lose(next) {
      loss = next;
    },
    async deliver() {
      await late?.();
      late = null;
    },
    close() {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function responded(to: Socket, bytes: Buffer): Promise<void> {
  const response = new Promise<void>((resolve) => to.once("data", () => resolve()));
  to.write(bytes);
  return response;
}
