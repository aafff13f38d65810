// A proxy to PostgreSQL that can lose data of the writing connection and can make connections silent.

import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";

/** The fault of the next message of the writing connection. By default the connection is then reset. */
export type Loss =
  /** It never arrives. */
  | "request"
  /** It is performed, but the response never arrives. */
  | "response"
  /** It arrives when `deliver` is called. */
  | "late request"
  /** Its first half arrives, and the connection is silent from then on, without being reset. */
  | "half request";

/** What a connection is for, by the name that it gives itself. */
export type Role = "write" | "lease" | "read";

export interface PostgresProxy {
  readonly port: number;
  lose(next: Loss): void;
  /** Delays what the connections of these roles send and receive from now on. This does not apply to connections that are opened later. */
  silence(...roles: Role[]): void;
  /** Delivers the delayed data, and lets new connections through again. */
  wake(): void;
  /** Lets a late request arrive; resolves when the server has responded to it. */
  deliver(): Promise<void>;
  /** No new connection gets through until `wake`; those that are open stay. */
  refuse(): void;
  close(): void;
}

interface Joined {
  role: Role | null;
  /** What is delivered later; null while everything is delivered at once. */
  kept: (() => void)[] | null;
}

export async function openProxy(serverPort: number): Promise<PostgresProxy> {
  let loss: Loss | null = null;
  let late: (() => Promise<void>) | null = null;
  let refuses = false;
  const sockets = new Set<Socket>();
  const joined = new Set<Joined>();

  const join = (outside: Socket) => {
    if (refuses) return void outside.destroy();
    const inside = dial({ port: serverPort, host: "127.0.0.1", noDelay: true });
    for (const socket of [outside, inside]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    let writes = false;
    let holdsBack = false;
    const own: Joined = { role: null, kept: null };
    joined.add(own);
    outside.on("close", () => joined.delete(own));
    outside.on("data", (bytes) => {
      own.role ??= (/longshore (write|lease|read)/.exec(bytes.toString("latin1"))?.[1] as Role | undefined) ?? null;
      if (own.kept !== null) {
        own.kept.push(() => inside.write(bytes));
        return;
      }
      writes ||= bytes.includes("longshore write");
      const now = writes && !bytes.includes("longshore write") ? loss : null;
      if (now !== null) loss = null;
      if (now === null) inside.write(bytes);
      else if (now === "half request") {
        inside.write(bytes.subarray(0, bytes.length / 2));
        own.kept = [];
      } else if (now === "response") {
        holdsBack = true;
        inside.write(bytes);
      } else {
        outside.resetAndDestroy();
        if (now === "request") inside.resetAndDestroy();
        else late = () => responded(inside, bytes);
      }
    });
    inside.on("data", (bytes) => {
      if (own.kept !== null) own.kept.push(() => outside.write(bytes));
      else if (holdsBack) {
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
    silence(...roles) {
      for (const each of joined) if (each.role !== null && roles.includes(each.role)) each.kept ??= [];
    },
    wake() {
      refuses = false;
      for (const each of joined) {
        const kept = each.kept ?? [];
        each.kept = null;
        for (const deliver of kept) deliver();
      }
    },
    async deliver() {
      await late?.();
      late = null;
    },
    refuse() {
      refuses = true;
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
