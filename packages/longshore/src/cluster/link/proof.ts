// How a node and the owner prove to each other that both read the same secret from the database.
//
// 1. The node asks for an upgrade of an HTTP request, with a hello: the versions it speaks, who it is, whom it expects, and a nonce.
// 2. The owner switches the connection to frames and sends its own nonce and the version it chose.
// 3. The node proves itself: HMAC-SHA256 with the secret over all of the above. Until this proof is right, the owner accepts nothing else.
// 4. The owner proves itself in the same way, together with its verdict: accepted, or the reason for a refusal. The node ignores a verdict
//    without a proof.
//
// The nonces make every proof different, so a recorded handshake proves nothing. The role is part of the proof, so that neither side can
// return the proof of the other side as its own.
//
// What TLS adds: the proofs show who is at both ends, but they do not protect the bytes between them from being read or changed. TLS does.
// Its certificate may be self-signed, because a proof also covers key material of the TLS session: an attacker in the middle has two sessions
// with different keys, so the proofs do not match. Without TLS the network must be trusted, as with the database.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { LongshoreError } from "../../core/errors.ts";

/** The path of the link on the ordinary port of a server. */
export const linkPath = "/longshore/link";
/** The value of `Upgrade`. */
export const linkUpgrade = "longshore-link";
/** The header with the hello and its answer. */
export const helloHeader = "longshore-link";

/** The first message of a node. */
export interface Hello {
  readonly speaks: readonly number[];
  /** The node that connects. */
  readonly node: string;
  /** A random text for each LinkClient. Together with the number of a call, it is the key of that call. */
  readonly life: string;
  /** The node that is expected at the other end, and the epoch of its ownership. */
  readonly owner: string;
  readonly epoch: string;
  readonly nonce: string;
  /** Whether the node connected with TLS. If the owner sees no TLS, a proxy between them ends it, and the owner's error can say so. */
  readonly tls: boolean;
}

/** The reply of the owner. */
export interface Welcome {
  readonly version: number;
  readonly nonce: string;
}

export type Role = "node" | "owner";

/** Maximum length of a name or an epoch. No node has a longer name. */
const nameCharsMax = 512;
const nonceBytes = 32;
const secretBytes = 32;
const nonceShape = /^[0-9a-f]{64}$/;
const lifeShape = /^[0-9a-f]{16}$/;
/** The label of our key material; each use of a TLS session has its own. */
const exportLabel = "EXPORTER-longshore-link";

export function newNonce(): string {
  return randomBytes(nonceBytes).toString("hex");
}

export function newLife(): string {
  return randomBytes(8).toString("hex");
}

/** Throws when the secret does not have the right length, which is a mistake in the configuration. */
export function checkSecret(secret: Uint8Array): Uint8Array {
  if (secret.length === secretBytes) return secret;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `The secret of the cluster has ${secret.length} bytes, expected ${secretBytes}.`);
}

/** The proof of one side. `verdict` is the owner's reason to refuse, or empty. */
export function proofOf(secret: Uint8Array, role: Role, hello: Hello, welcome: Welcome, binding: string, verdict = ""): string {
  const { speaks, node, life, owner, epoch, nonce } = hello;
  // JSON keeps the fields apart: no two different handshakes have the same text.
  const text = JSON.stringify([
    linkUpgrade,
    role,
    speaks,
    node,
    life,
    owner,
    epoch,
    nonce,
    welcome.version,
    welcome.nonce,
    binding,
    verdict,
  ]);
  return createHmac("sha256", secret).update(text).digest("hex");
}

/** Takes the same time for every wrong proof of the right length. */
export function isProof(given: unknown, expected: string): boolean {
  if (typeof given !== "string" || given.length !== expected.length) return false;
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Key material of the TLS session, which only its two ends can compute; empty without TLS. */
export function bindingOf(socket: Socket): string {
  if (!(socket instanceof TLSSocket)) return "";
  return socket.exportKeyingMaterial(nonceBytes, exportLabel, Buffer.alloc(0)).toString("hex");
}

export function headerOf(value: Hello | Welcome | { readonly speaks: readonly number[] }): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** Returns undefined for a header that is not ours. */
export function helloIn(header: string | undefined): Hello | undefined {
  const value = readHeader(header) as Partial<Hello> | undefined;
  if (value === undefined || !isVersions(value.speaks)) return undefined;
  const { node, life, owner, epoch, nonce, tls } = value;
  const names = [node, owner, epoch].every((name) => typeof name === "string" && name.length <= nameCharsMax);
  const random = typeof nonce === "string" && nonceShape.test(nonce) && typeof life === "string" && lifeShape.test(life);
  return names && random && typeof tls === "boolean" ? (value as Hello) : undefined;
}

export function welcomeIn(header: string | undefined): Welcome | undefined {
  const value = readHeader(header) as Partial<Welcome> | undefined;
  if (value === undefined || !Number.isSafeInteger(value.version)) return undefined;
  return typeof value.nonce === "string" && nonceShape.test(value.nonce) ? (value as Welcome) : undefined;
}

/** The versions in the refusal of an owner that shares none with us. */
export function versionsIn(header: string | undefined): readonly number[] {
  const speaks = readHeader(header)?.speaks;
  return isVersions(speaks) ? speaks : [];
}

/** The highest version that both sides speak. */
export function commonVersion(ours: readonly number[], theirs: readonly number[]): number | undefined {
  const common = ours.filter((version) => theirs.includes(version));
  return common.length === 0 ? undefined : Math.max(...common);
}

/** How many versions a side may name. */
const versionsMax = 32;

function isVersions(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length <= versionsMax && value.every((version) => Number.isSafeInteger(version));
}

function readHeader(header: string | undefined): Record<string, unknown> | undefined {
  if (header === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(header, "base64url").toString());
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    // Another program sent it, or a person: the caller refuses it.
    return undefined;
  }
}
