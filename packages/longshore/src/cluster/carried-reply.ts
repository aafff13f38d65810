// The reply to a carried request, as JSON. What has no end, or is long, is fetched by the node in pieces, as fast as its client reads.

import { Readable } from "node:stream";
import { LongBytes } from "../core/long-bytes.ts";
import { type GrpcCode, GrpcError } from "../net/grpc/status.ts";
import type { HttpReply, Problem } from "../net/http/http.ts";

export interface CarriedReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
  /** In base64. */
  readonly bytes?: string;
  /** The body follows in pieces under this name. */
  readonly body?: string;
  /** How many bytes it has, where the owner knows. The node passes such a body on in one piece, as a server of its own does. */
  readonly length?: number;
  /** A refusal of the owner's listener code, which the node's listener puts into the words of the protocol. */
  readonly problem?: Problem;
  /** Server-sent events follow under this name. */
  readonly events?: string;
  /** The owner waits to hear whether the client got the reply. */
  readonly confirm?: true;
}

/** A longer body is fetched in pieces, so that one reply does not hold up the others of the link. */
const wholeCharsMax = 262_144;

/** The fields of a reply whose body is short. */
export function wholeReply({ status, headers, body }: HttpReply): CarriedReply | undefined {
  const head = headers === undefined ? { status } : { status, headers };
  if (body === undefined) return head;
  if (typeof body === "string") return body.length <= wholeCharsMax ? { ...head, text: body } : undefined;
  if (body instanceof Readable || body.byteLength > wholeCharsMax) return undefined;
  const bytes = body instanceof LongBytes ? body.subarray(0, body.byteLength) : body;
  return { ...head, bytes: Buffer.from(bytes).toString("base64") };
}

/** The bytes of a long body, in pieces. */
export function* piecesOf(body: string | Uint8Array | LongBytes): Generator<Uint8Array, void, void> {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  for (let at = 0; at < bytes.byteLength; at += wholeCharsMax) yield bytes.subarray(at, Math.min(at + wholeCharsMax, bytes.byteLength));
}

/** The end of a gRPC call that its handler refused. */
export interface CarriedStatus {
  readonly code: number;
  readonly message: string;
  readonly details: readonly { readonly typeUrl: string; readonly value: string }[];
}

export function carriedStatus({ code, message, details }: GrpcError): CarriedStatus {
  return { code, message, details: details.map(({ typeUrl, value }) => ({ typeUrl, value: Buffer.from(value).toString("base64") })) };
}

export function statusFrom({ code, message, details }: CarriedStatus): GrpcError {
  return new GrpcError(
    code as GrpcCode,
    message,
    details.map(({ typeUrl, value }) => ({ typeUrl, value: Buffer.from(value, "base64") })),
  );
}
