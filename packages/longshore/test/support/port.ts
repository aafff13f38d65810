// Loopback ports of servers and services that a test starts: a free one, and whether somebody listens on it yet.

import { createServer, connect as dial } from "node:net";

/**
 * A port for a server that comes later, or goes away and comes back. Below the range that the kernel gives to outgoing connections, or a
 * client that dials while nobody listens could be given the very port, connect to itself, and keep the server from it.
 */
const portMin = 20_000;
const portMax = 32_000;
const triesMax = 50;

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries++) {
    const port = portMin + Math.floor(Math.random() * (portMax - portMin));
    if (await canListen(port)) return port;
  }
  throw new Error(`No free port found between ${portMin} and ${portMax} in ${triesMax} tries`);
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
