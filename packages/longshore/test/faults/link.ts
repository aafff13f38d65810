// A network between a worker and the server that can be cut or go silent. While it is silent nothing passes in either direction, not even
// the end of a connection, as when a machine loses its network. Afterwards all delayed data arrives.

import type { AddressInfo } from "node:net";
import { createServer, connect as dial, type Socket } from "node:net";

export interface Link {
  url: string;
  silence(): void;
  /** Delays what the server sends, but not what it receives. */
  hush(): void;
  /** Delivers the delayed data. */
  restore(): void;
  /** Resets every connection. New ones may be made at once. */
  cut(): void;
  close(): Promise<void>;
}

/** One connection of a worker, and the corresponding one to the server. */
interface Pair {
  outside: Socket;
  inside: Socket;
}

/** The target is one port, or a port that is chosen for each connection. */
export async function openLink(serverPort: number | (() => number)): Promise<Link> {
  const portNow = typeof serverPort === "number" ? () => serverPort : serverPort;
  const pairs = new Set<Pair>();
  /** Set while the link is silent: what to do when it works again. */
  let held: (() => void)[] | undefined;
  let hushed = false;
  const now = (act: () => void): void => {
    if (held) held.push(act);
    else act();
  };

  /** Passes on what one side sends to the other. A paused side sends nothing, not even its end. */
  const pass = (pair: Pair, from: Socket, to: Socket): void => {
    from.on("data", (chunk) => to.write(chunk));
    from.on("end", () => now(() => to.end()));
    from.on("error", () => now(() => to.resetAndDestroy()));
    from.on("close", () => {
      pairs.delete(pair);
      // `end` passes on an orderly end. This is for a side that broke while it was paused.
      now(() => to.destroySoon());
    });
  };

  const join = (outside: Socket): void => {
    const inside = dial({ port: portNow(), host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    const pair = { outside, inside };
    pairs.add(pair);
    pass(pair, outside, inside);
    pass(pair, inside, outside);
    outside.resume();
    if (hushed) inside.pause();
  };

  const listener = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (outside) => {
    // Until it is joined, no other listener would notice its end.
    outside.on("error", () => outside.destroy());
    now(() => join(outside));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));

  const cut = (): void => {
    for (const { outside, inside } of pairs) {
      outside.resetAndDestroy();
      inside.resetAndDestroy();
    }
  };
  const restore = (): void => {
    const acts = held ?? [];
    held = undefined;
    hushed = false;
    for (const { outside, inside } of pairs) {
      outside.resume();
      inside.resume();
    }
    for (const act of acts) act();
  };
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    silence() {
      held ??= [];
      for (const { outside, inside } of pairs) {
        outside.pause();
        inside.pause();
      }
    },
    hush() {
      hushed = true;
      for (const { inside } of pairs) inside.pause();
    },
    restore,
    cut,
    async close() {
      restore();
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      cut();
      await closed;
    },
  };
}
