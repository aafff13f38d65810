// Repeated reports (README.md, "Complete"). The wire returns 409 for the second report of a lease. A client that sends `Idempotency-Key`
// leaves a receipt with its report: digests of the key and of its content, stored as long as the task. They distinguish a repetition from
// another report under the same key, which is refused with its own error.
//
// In a cluster, a request whose owner was lost before its answer is performed by the next one. Its client has sent it once, so that it must
// get the first answer: the id of the request is the receipt then.

import { hash } from "node:crypto";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { idempotencyHeader } from "../wire/codes.ts";
import { textReply } from "./refuse.ts";
import { conflict, ok } from "./replies.ts";

/** Stored characters of a digest, 6 bits each: enough that two reports of one lease do not collide by chance. */
const digestChars = 16;

/** Undefined for a client that does not send a key, where a request is performed once. `fields` are those of the body, in an order that never changes. */
export function receiptOf(request: HttpRequest, fields: { readonly [field: string]: string | boolean }): string | undefined {
  const key = request.headers[idempotencyHeader];
  if (key === undefined) return request.id === undefined ? undefined : digest(`request ${request.id}`);
  let receipt = digest(String(key));
  for (const field in fields) receipt += ` ${field}=${digest(String(fields[field]))}`;
  return receipt;
}

/** The reply to a report whose lease was already closed by one of the same kind, with the receipt `first`. */
export function answerRepeat(receipt: string, first: string | undefined): HttpReply {
  if (receipt === first) return ok;
  const [key, ...fields] = receipt.split(" ");
  const [firstKey, ...firstFields] = first?.split(" ") ?? [];
  if (key !== firstKey) return conflict;
  const differing = fields.filter((field, at) => field !== firstFields[at]).map((field) => `\`${field.slice(0, field.indexOf("="))}\``);
  return textReply(
    409,
    `${differing.join(" and ")}: not what this lease reported before with the same Idempotency-Key, expected the same report again; the first one counts`,
  );
}

function digest(text: string): string {
  return hash("sha256", text, "base64url").slice(0, digestChars);
}
