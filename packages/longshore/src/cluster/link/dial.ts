// A node connects to the owner: HTTP Upgrade, then the proofs of both sides.

import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { BadFrame } from "./frames.ts";
import { kinds } from "./messages.ts";
import {
  bindingOf,
  type Hello,
  headerOf,
  helloHeader,
  isProof,
  linkPath,
  linkUpgrade,
  newNonce,
  proofOf,
  versionsIn,
  type Welcome,
  welcomeIn,
} from "./proof.ts";
import { Wire, type WireEvents, type WireOptions } from "./wire.ts";

/** Where the owner is. */
export interface LinkOwner {
  readonly node: string;
  readonly url: string;
  /** The epoch of its ownership: a node that owned the data in another epoch refuses the link. */
  readonly epoch?: string;
}

export interface LinkTls {
  /** Certificates to trust, as PEM. Default: any certificate, since the proofs cover the TLS session (see proof.ts). */
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
}

export interface DialOptions extends WireOptions {
  readonly secret: Uint8Array;
  readonly node: string;
  readonly life: string;
  readonly speaks: readonly number[];
  readonly tls?: LinkTls;
  /** Aborted when the link is not wanted any more: `dial` gives up. */
  readonly signal: AbortSignal;
  /** Called when both sides have proved who they are. The link delivers its messages to the returned value. */
  connected(wire: Wire): WireEvents;
}

/** Resolves when the link is there; rejects with an Error whose message is the reason. */
export function dial(owner: LinkOwner, options: DialOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    let wire: Wire | undefined;
    let sent: ClientRequest | undefined;
    const { clock, limits, signal } = options;
    const settle = (error?: Error) => {
      cancel();
      signal.removeEventListener("abort", onAbort);
      if (error === undefined) return resolve();
      reject(error);
      wire?.cut(error.message);
      sent?.destroy();
    };
    const onAbort = () => settle(new Error("The link was closed."));
    const cancel = clock.at(clock.now() + limits.handshakeMs, () => {
      settle(new Error(`Node ${owner.node} at ${owner.url} did not complete the handshake within ${limits.handshakeMs} ms.`));
    });
    signal.addEventListener("abort", onAbort);
    try {
      const url = new URL(linkPath, owner.url);
      const hello = helloTo(owner, url, options);
      sent = requestTo(url, hello, options.tls);
      sent.on("error", (cause) => settle(new Error(`Node ${owner.node} at ${owner.url} cannot be reached: ${cause.message}.`, { cause })));
      sent.on("response", (response) => settle(refused(owner, response, options.speaks)));
      sent.on("upgrade", (response, socket, head) => {
        // The link was closed before the owner responded.
        if (signal.aborted) return void socket.destroy();
        wire = prove({ owner, hello, response, socket, head }, options, settle);
      });
      sent.end();
    } catch (error) {
      settle(error as Error);
    }
  });
}

function helloTo(owner: LinkOwner, url: URL, { speaks, node, life }: DialOptions): Hello {
  return { speaks, node, life, owner: owner.node, epoch: owner.epoch ?? "", nonce: newNonce(), tls: url.protocol === "https:" };
}

function requestTo(url: URL, hello: Hello, tls: LinkTls | undefined): ClientRequest {
  const headers = { connection: "Upgrade", upgrade: linkUpgrade, [helloHeader]: headerOf(hello) };
  const options: RequestOptions = { method: "GET", agent: false, headers };
  if (url.protocol !== "https:") return httpRequest(url, options);
  return httpsRequest(url, { ...options, ...(tls?.ca === undefined ? { rejectUnauthorized: false } : { ca: tls.ca as string | Buffer }) });
}

interface Switched {
  readonly owner: LinkOwner;
  readonly hello: Hello;
  readonly response: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
}

function prove(
  { owner, hello, response, socket, head }: Switched,
  options: DialOptions,
  settle: (error?: Error) => void,
): Wire | undefined {
  socket.on("error", () => undefined);
  const welcome = welcomeIn(response.headers[helloHeader] as string | undefined);
  if (welcome === undefined || !options.speaks.includes(welcome.version)) {
    socket.destroy();
    settle(new Error(`The server at ${owner.url} is not a node of ours: it switched to another protocol.`));
    return undefined;
  }
  const binding = bindingOf(socket);
  const wire = new Wire(socket, options, {
    message([kind, proof, refusal]) {
      if (kind !== kinds.proved) throw new BadFrame("The proof of the owner is missing.");
      const verdict = typeof refusal === "string" ? refusal : "";
      if (!isOwner(options.secret, hello, welcome, binding, verdict, proof)) {
        return settle(new Error(`The server at ${owner.url} gave a wrong proof: it does not have the secret of this cluster.`));
      }
      if (verdict !== "") return settle(new Error(verdict));
      wire.establish(options.connected(wire));
      settle();
    },
    broken: (reason) =>
      settle(new Error(`Node ${owner.node} at ${owner.url} ended the handshake, which it does for a wrong proof. ${reason}`)),
  });
  wire.send(JSON.stringify([kinds.prove, proofOf(options.secret, "node", hello, welcome, binding)]));
  wire.unshift(head);
  return wire;
}

function isOwner(secret: Uint8Array, hello: Hello, welcome: Welcome, binding: string, verdict: string, proof: unknown): boolean {
  return isProof(proof, proofOf(secret, "owner", hello, welcome, binding, verdict));
}

function refused({ node, url }: LinkOwner, response: IncomingMessage, speaks: readonly number[]): Error {
  response.resume();
  if (response.statusCode !== 426) return new Error(`The server at ${url} answered ${response.statusCode} and opened no link.`);
  const theirs = versionsIn(response.headers[helloHeader] as string | undefined);
  return new Error(
    `Node ${node} speaks version ${theirs.join(", ")} of the link, and this node speaks ${speaks.join(", ")}; update one of them.`,
  );
}
