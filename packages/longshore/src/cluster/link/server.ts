// The owner's side of all links. It takes over connections that request the upgrade, and serves nodes that prove who they are.

import type { Socket } from "node:net";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { LoopTurns } from "../../core/slices/loop-turns.ts";
import { BadFrame } from "./frames.ts";
import { type LinkLimits, linkLimits, linkTurnUnits } from "./limits.ts";
import { kinds, spokenVersions } from "./messages.ts";
import {
  bindingOf,
  checkSecret,
  commonVersion,
  type Hello,
  headerOf,
  helloHeader,
  helloIn,
  isProof,
  linkUpgrade,
  newNonce,
  proofOf,
  type Welcome,
} from "./proof.ts";
import { ServedLink } from "./served-link.ts";
import type { LinkService } from "./service.ts";
import { Wire } from "./wire.ts";

export interface LinkServerOptions {
  /** 32 bytes, which all nodes of the cluster read from the database. */
  readonly secret: Uint8Array;
  /** The name of this node. */
  readonly node: string;
  readonly service: LinkService;
  /**
   * The epoch of this node's ownership. While it does not own the data this is null, and links are refused. Default: links with any epoch
   * are accepted.
   */
  readonly epoch?: () => string | null;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly limits?: Partial<LinkLimits>;
  /** The versions that this side speaks. Tests give others. */
  readonly speaks?: readonly number[];
}

/** The request of an upgrade, as the listener passes it on. */
export interface LinkRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Called when the client has proved that it is a node. From then on, a full listener does not close its connection in favour of others. */
  known?(): void;
}

export interface LinkServerFigures {
  /** Links that are open now. */
  readonly links: number;
  /** Calls since the start, and those that are being carried out. */
  readonly calls: number;
  readonly unanswered: number;
  readonly streams: number;
  /** Connections with a wrong proof. */
  readonly strangers: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** A node with a wrong secret tries again each second. It is logged once in this time. */
const refusalLogMs = 60_000;

export class LinkServer {
  readonly #options: LinkServerOptions;
  readonly #secret: Uint8Array;
  readonly #clock: Clock;
  readonly #limits: LinkLimits;
  readonly #speaks: readonly number[];
  /** Handshakes in progress, the oldest first. */
  readonly #handshakes = new Set<Wire>();
  readonly #links = new Map<Wire, ServedLink>();
  readonly #counts = { bytesIn: 0, bytesOut: 0 };
  readonly #turns = new LoopTurns(linkTurnUnits);
  readonly #answerTurns = new LoopTurns(linkTurnUnits);
  #calls = 0;
  #strangers = 0;
  #loggedUntilMs = 0;
  #closed = false;

  constructor(options: LinkServerOptions) {
    this.#options = options;
    this.#secret = checkSecret(options.secret);
    this.#clock = options.clock ?? systemClock;
    this.#limits = { ...linkLimits, ...options.limits };
    this.#speaks = options.speaks ?? spokenVersions;
  }

  get figures(): LinkServerFigures {
    const links = [...this.#links.values()];
    return {
      links: links.length,
      calls: this.#calls,
      unanswered: links.reduce((sum, link) => sum + link.calls, 0),
      streams: links.reduce((sum, link) => sum + link.streams, 0),
      strangers: this.#strangers,
      ...this.#counts,
    };
  }

  /** Takes over the socket of an HTTP request that asks for the upgrade. `head` has arrived after the request. */
  accept(request: LinkRequest, socket: Socket, head: Buffer): void {
    // An error without a listener ends the process, and a client may disconnect before the link has its own listeners.
    socket.on("error", () => undefined);
    const hello = helloIn(textOf(request.headers[helloHeader]));
    if (hello === undefined || textOf(request.headers.upgrade)?.toLowerCase() !== linkUpgrade) return answer(socket, "400 Bad Request");
    const version = commonVersion(this.#speaks, hello.speaks);
    if (version === undefined) return answer(socket, "426 Upgrade Required", `${helloHeader}: ${headerOf({ speaks: this.#speaks })}\r\n`);
    if (this.#closed || this.#links.size >= this.#limits.links) return answer(socket, "503 Service Unavailable");
    const welcome: Welcome = { version, nonce: newNonce() };
    const switched = `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${linkUpgrade}\r\n`;
    socket.write(`${switched}${helloHeader}: ${headerOf(welcome)}\r\n\r\n`);
    this.#shake(request, socket, hello, welcome, head);
  }

  /** Cuts all links, for example when this node steps down. New ones are accepted as `epoch` allows. */
  cut(reason = "The owner steps down."): void {
    for (const wire of [...this.#handshakes, ...this.#links.keys()]) wire.cut(reason);
  }

  /** Ends all links after what was sent and the answers that wait for their turn, and accepts no more. */
  async end(): Promise<void> {
    const reason = "The owner hands the data over.";
    this.#closed = true;
    for (const wire of this.#handshakes) wire.end(reason);
    await Promise.all([...this.#links.values()].map((link) => link.end(reason)));
  }

  /** Cuts all links and accepts no more. */
  close(): void {
    this.#closed = true;
    this.cut("The owner closes.");
  }

  #shake(request: LinkRequest, socket: Socket, hello: Hello, welcome: Welcome, head: Buffer): void {
    const over = () => {
      cancel();
      this.#handshakes.delete(wire);
    };
    const { sendingBytes } = this.#limits;
    const wire = new Wire(
      socket,
      { clock: this.#clock, limits: this.#limits, counts: this.#counts, turns: this.#turns, sendingBytesMax: sendingBytes },
      {
        message: ([kind, proof]) => {
          if (kind !== kinds.prove) throw new BadFrame("The proof is missing.");
          over();
          this.#prove(request, wire, hello, welcome, proof);
        },
        broken: over,
      },
    );
    const [oldest] = this.#handshakes;
    if (oldest !== undefined && this.#handshakes.size >= this.#limits.handshakes) oldest.cut("Too many handshakes are under way.");
    this.#handshakes.add(wire);
    const cancel = this.#clock.at(this.#clock.now() + this.#limits.handshakeMs, () => wire.cut("The handshake took too long."));
    wire.unshift(head);
  }

  #prove(request: LinkRequest, wire: Wire, hello: Hello, welcome: Welcome, proof: unknown): void {
    const binding = bindingOf(wire.socket);
    if (!isProof(proof, proofOf(this.#secret, "node", hello, welcome, binding))) {
      this.#strangers++;
      this.#reportStranger(wire.socket, hello, binding !== "");
      return wire.cut("The proof is wrong.");
    }
    const refusal = this.#refusal(hello);
    const ours = proofOf(this.#secret, "owner", hello, welcome, binding, refusal ?? "");
    wire.send(JSON.stringify([kinds.proved, ours, ...(refusal === undefined ? [] : [refusal])]));
    if (refusal !== undefined) return wire.end(refusal);
    request.known?.();
    this.#serve(wire, hello);
  }

  #serve(wire: Wire, { node, life }: Hello): void {
    const { service, logger } = this.#options;
    const link: ServedLink = new ServedLink({
      ...{ wire, service, logger, node, life, limits: this.#limits, answerTurns: this.#answerTurns },
      began: () => {
        this.#calls++;
      },
      ended: (reason) => {
        this.#links.delete(wire);
        logger?.info("The link of a node ended", { node, reason });
      },
    });
    this.#links.set(wire, link);
    wire.establish(link);
    logger?.info("A node is linked", { node });
  }

  /** Why a node is refused although its proof is right; undefined when it is accepted. */
  #refusal({ owner, epoch }: Hello): string | undefined {
    const { node, epoch: current } = this.#options;
    if (owner !== node) return `This is node ${node}, and not ${owner}.`;
    const now = current?.();
    if (now === null) return `Node ${node} does not own the data.`;
    if (now !== undefined && now !== epoch)
      return `Node ${node} owns the data in epoch ${now}, and not ${epoch === "" ? "without one" : epoch}.`;
    return undefined;
  }

  #reportStranger(socket: Socket, hello: Hello, tls: boolean): void {
    const now = this.#clock.now();
    if (now < this.#loggedUntilMs) return;
    this.#loggedUntilMs = now + refusalLogMs;
    const hint =
      hello.tls === tls
        ? "It does not have the secret of this cluster, or a program between the two sides reads the connection."
        : "One side uses TLS and the other side does not see it: a program between them ends TLS.";
    this.#options.logger?.warn(`A connection to the link between nodes gave a wrong proof. ${hint}`, { from: socket.remoteAddress });
  }
}

function textOf(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Refuses the upgrade, without details: only clients that have proved that they are nodes get the reason. */
function answer(socket: Socket, status: string, headers = ""): void {
  socket.write(`HTTP/1.1 ${status}\r\n${headers}connection: close\r\ncontent-length: 0\r\n\r\n`);
  socket.destroySoon();
}
