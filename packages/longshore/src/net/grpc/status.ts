// The end of a gRPC call: a code, a message and, when it failed, details for programs. Sent as the trailers `grpc-status`, `grpc-message`
// (percent-encoded UTF-8) and `grpc-status-details-bin` (a google.rpc.Status in base64).
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
import { type Decoded, type Encodable, type Message, message } from "../protobuf/protobuf.ts";

export const GrpcCode = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;
export type GrpcCode = (typeof GrpcCode)[keyof typeof GrpcCode];

/** One detail of an error, as google.protobuf.Any carries it. */
export interface GrpcDetail {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** The end of a failed call: thrown by a handler, and thrown to a client. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly code: GrpcCode;
  readonly details: readonly GrpcDetail[];

  constructor(code: GrpcCode, message: string, details: readonly GrpcDetail[] = [], options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = details;
  }
}

/** The name of a code, for people. */
export function codeName(code: number): string {
  return names.get(code) ?? String(code);
}

const names = new Map<number, string>(Object.entries(GrpcCode).map(([name, code]) => [code, name]));

/** The invalid fields of a request. */
export const BadRequest = message("google.rpc.BadRequest", {
  fieldViolations: [1, message("google.rpc.BadRequest.FieldViolation", { field: [1, "string"], description: [2, "string"] }), "repeated"],
});

/** The reason of a failure, for programs: `reason` in capitals, unique within `domain`. */
export const ErrorInfo = message("google.rpc.ErrorInfo", {
  reason: [1, "string"],
  domain: [2, "string"],
  metadata: [3, "string", "map"],
});

const typePrefix = "type.googleapis.com/";

/** A detail of a known message type: `detailOf(ErrorInfo, { reason: "RESOURCE_NOT_FOUND", domain: "example.org" })`. */
export function detailOf<M extends Message<object, object>>(type: M, value: Encodable<M>): GrpcDetail {
  return { typeUrl: `${typePrefix}${type.name}`, value: type.encode(value as object) };
}

/** The first detail of this type; undefined when there is none or it cannot be read. */
export function findDetail<M extends Message<object, object>>(error: GrpcError, type: M): Decoded<M> | undefined {
  const detail = error.details.find(({ typeUrl }) => typeUrl === `${typePrefix}${type.name}`);
  if (detail === undefined) return undefined;
  try {
    return type.decode(detail.value) as Decoded<M>;
  } catch {
    // A detail only adds to an error; one that cannot be read must not hide the error.
    return undefined;
  }
}

export const Status = message("google.rpc.Status", {
  code: [1, "int32"],
  message: [2, "string"],
  details: [3, message("google.protobuf.Any", { typeUrl: [1, "string"], value: [2, "bytes"] }), "repeated"],
});

/** The limit of an escaped message. Together with the details it must fit into the 8 KiB of headers that grpc-core always accepts. */
const MESSAGE_CHARS_MAX = 3_600;
/** The limit of the details, in bytes before base64. Larger details are left out: they only add to code and message. */
const DETAILS_BYTES_MAX = 2_800;

/** The trailers that end a call. */
export function trailersOf(error: GrpcError): Record<string, string> {
  const text = shortened(error.message);
  const trailers: Record<string, string> = { "grpc-status": String(error.code), "grpc-message": escapeMessage(text) };
  if (error.details.length === 0) return trailers;
  const bytes = Status.encode({ code: error.code, message: text, details: error.details });
  if (bytes.length <= DETAILS_BYTES_MAX) trailers["grpc-status-details-bin"] = Buffer.from(bytes).toString("base64");
  return trailers;
}

/** The text, cut to the limit. */
function shortened(text: string): string {
  let kept = text.slice(0, MESSAGE_CHARS_MAX);
  for (let size = escapeMessage(kept).length; size > MESSAGE_CHARS_MAX; size = escapeMessage(kept).length) {
    kept = kept.slice(0, Math.floor((kept.length * MESSAGE_CHARS_MAX) / size));
  }
  return kept.length === text.length ? text : `${kept}...`;
}

/** Reads the trailers that end a call; undefined when it succeeded, and `missing` when they have no status. */
export function errorOf(
  trailers: Readonly<Record<string, string | string[] | undefined>>,
  missing: () => GrpcError,
): GrpcError | undefined {
  const status = trailers["grpc-status"];
  if (status === undefined) return missing();
  const code = Number(status);
  if (code === GrpcCode.OK) return undefined;
  const text = trailers["grpc-message"];
  const known = names.has(code) ? (code as GrpcCode) : GrpcCode.UNKNOWN;
  return new GrpcError(known, typeof text === "string" ? unescapeMessage(text) : "", detailsOf(trailers["grpc-status-details-bin"]));
}

function detailsOf(text: string | string[] | undefined): GrpcDetail[] {
  if (typeof text !== "string") return [];
  try {
    return Status.decode(Buffer.from(text, "base64")).details;
  } catch {
    // The details cannot be read. Code and message are valid without them.
    return [];
  }
}

/** Keeps printable ASCII except the percent sign; escapes the UTF-8 bytes of everything else. */
export function escapeMessage(text: string): string {
  if (!/[^ -$&-~]/.test(text)) return text;
  let escaped = "";
  for (const byte of Buffer.from(text)) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    escaped += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return escaped;
}

/** Undoes `escapeMessage`. Invalid escapes stay unchanged: a message must never be lost because of its form. */
export function unescapeMessage(text: string): string {
  if (!text.includes("%")) return text;
  const bytes: number[] = [];
  const source = Buffer.from(text);
  for (let at = 0; at < source.length; at++) {
    const match = source[at] === 0x25 ? /^%([0-9a-fA-F]{2})$/.exec(source.toString("latin1", at, at + 3)) : null;
    bytes.push(match === null ? (source[at] as number) : Number.parseInt(match[1] as string, 16));
    if (match !== null) at += 2;
  }
  return Buffer.from(bytes).toString("utf8");
}
