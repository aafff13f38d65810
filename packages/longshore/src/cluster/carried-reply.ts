// The reply to a carried request, as JSON. The node fetches long and endless bodies in pieces, as fast as its client reads them.

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
  /** How many bytes the body has, if the owner knows it. The node sends such a body to its client in one piece, as the owner would. */
  readonly length?: number;
  /** The listener code of the owner refused the request. The listener of the node writes this refusal in the format of the protocol. */
  readonly problem?: Problem;
  /** Server-sent events follow under this name. */
  readonly events?: string;
  /** The node must report to the owner whether the client got the reply. */
  readonly confirm?: true;
}

/** A longer body is fetched in pieces, so that it does not delay other replies on the link. */
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
