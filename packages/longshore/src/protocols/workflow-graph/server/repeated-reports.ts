// Repeated reports (README.md, "Complete"). The wire returns 409 for the second report of a lease. When a client sends `Idempotency-Key`, a
// receipt is stored with its report: digests of the key and of the content, which are kept as long as the task. They distinguish a
// repetition from a different report under the same key, which is refused with a separate error.
//
// In a cluster, when an owner is lost before it has replied to a request, the next owner performs the request again. Its client has sent it
// only once, so it must get the first reply. Then the id of the request is the receipt.

import { hash } from "node:crypto";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { idempotencyHeader } from "../wire/codes.ts";
import { textReply } from "./refuse.ts";
import { conflict, ok } from "./replies.ts";

/** How many characters of a digest are stored, 6 bits each: enough that two reports of one lease do not collide by chance. */
const digestChars = 16;

/**
 * Undefined when the client sends no key and the request cannot be performed twice. `fields` are those of the body, in an order that never
 * changes.
 */
export function receiptOf(
  request: Pick<HttpRequest, "headers" | "id">,
  fields: { readonly [field: string]: string | boolean },
  key: string | readonly string[] | undefined = request.headers[idempotencyHeader],
): string | undefined {
  if (key === undefined) return request.id === undefined ? undefined : digest(`request ${request.id}`);
  let receipt = digest(String(key));
  for (const field in fields) receipt += ` ${field}=${digest(String(fields[field]))}`;
  return receipt;
}

/** The reply to a report when another report of the same kind, with the receipt `first`, has already closed the lease. */
export function answerRepeat(receipt: string, first: string | undefined): HttpReply {
  if (receipt === first) return ok;
  const [key, ...fields] = receipt.split(" ");
  const [firstKey, ...firstFields] = first?.split(" ") ?? [];
  if (key !== firstKey) return conflict;
  const differing = fields.filter((field, at) => field !== firstFields[at]).map((field) => `\`${field.slice(0, field.indexOf("="))}\``);
  return textReply(
    409,
    `${differing.join(" and ")}: differs from the earlier report of this lease with the same Idempotency-Key, expected the same report again; the first one counts`,
  );
}

function digest(text: string): string {
  return hash("sha256", text, "base64url").slice(0, digestChars);
}
