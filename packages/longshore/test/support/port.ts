// Loopback ports of servers and services that a test starts: a free one, and whether a server listens on it yet.

import { createServer, connect as dial } from "node:net";

/**
 * A port for a server that comes later, or goes away and comes back. It is below the range that the kernel gives to outgoing connections.
 * From that range, a client that dials while no server listens could be given the same port and connect to itself.
 */
const portMin = 20_000;
const portMax = 32_000;
/** Processes that may ask at the same time: those of the test runner, which numbers them from 1, and the one that starts them. */
const askersMax = 6;
const shareOfEach = (portMax - portMin) / askersMax;

/**
 * A port is free until its server listens, and again while the server is away. No other test may be given it meanwhile. So each process of
 * the test runner has a share of its own. It begins anywhere in its share, because another run may be in progress on the same machine.
 */
const first = portMin + (Number(process.env.VITEST_POOL_ID ?? 0) % askersMax) * shareOfEach;
let next = Math.floor(Math.random() * shareOfEach);

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < shareOfEach; tries++) {
    const port = first + (next++ % shareOfEach);
    if (await canListen(port)) return port;
  }
  throw new Error(`No port from ${first} to ${first + shareOfEach - 1} is free`);
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = dial(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
