// Keeps a connection from OpenSSL until its ClientHello is here completely and the turn of the event loop has room for a handshake.

import type { Socket } from "node:net";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Clock } from "../../core/clock.ts";
import type { LoopTurns } from "../../core/slices/loop-turns.ts";
import { helloIn } from "./client-hello.ts";

/** The work of a handshake in units of LoopTurns: eight handshakes fill a turn. */
export const handshakeUnits = 512;

export interface AwaitedHelloOptions {
  clock: Clock;
  /** The budget for what is kept. */
  receiving: ByteBudget;
  turns: LoopTurns;
  /** How long the whole message may take. */
  patienceMs: number;
  /** Called once, when OpenSSL may read the socket. The socket has no listeners of ours then, and what has arrived can be read from it. */
  came(): void;
  /** Called instead, when there will be no such message. */
  failed(): void;
}

/** The client counts as unknown: it has shown no token yet. */
const unknown = (): boolean => false;

export function awaitHello(socket: Socket, { clock, receiving, turns, patienceMs, came, failed }: AwaitedHelloOptions): void {
  let bytes: Buffer = Buffer.alloc(0);
  const share = turns.share(() => !socket.destroyed && pass(), unknown);
  const release = () => {
    cancel();
    receiving.give(bytes.length);
    socket.removeListener("data", onData);
    socket.removeListener("end", fail);
    socket.removeListener("close", release);
    socket.removeListener("error", onError);
  };
  const fail = () => {
    release();
    failed();
  };
  const pass = () => {
    share.spend(handshakeUnits);
    release();
    socket.pause();
    socket.unshift(bytes);
    came();
  };
  // A socket that fails closes next; without a listener its error would end the process.
  const onError = () => undefined;
  const onData = (more: Buffer) => {
    if (!receiving.take(more.length)) return fail();
    bytes = bytes.length === 0 ? more : Buffer.concat([bytes, more]);
    const hello = helloIn(bytes);
    if (hello === "none") return fail();
    if (hello === "begun") return;
    socket.pause();
    if (share.used) share.wait();
    else pass();
  };
  const cancel = clock.at(clock.now() + patienceMs, fail);
  socket.on("data", onData);
  socket.once("end", fail);
  socket.once("close", release);
  socket.on("error", onError);
}
