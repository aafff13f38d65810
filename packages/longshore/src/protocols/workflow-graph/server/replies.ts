// Constant replies, created once.

import type { HttpReply } from "../../../net/http/http.ts";
import { reportsHeader, waitHeader } from "../wire/codes.ts";
import { reportsMax, waitSecsMax } from "../wire/shapes.ts";

export const jsonHeaders = { "content-type": "application/json" } as const;
/** Replies to claims and registrations contain the longest wait that a claim may request. */
export const claimHeaders = { "content-type": "application/json", [waitHeader]: String(waitSecsMax) } as const;

/** Success without a payload has no body and no content type. */
export const ok: HttpReply = { status: 200 };
export const registered: HttpReply = {
  status: 200,
  headers: { [waitHeader]: String(waitSecsMax), [reportsHeader]: String(reportsMax) },
};
export const accepted: HttpReply = { status: 202 };
export const notFound: HttpReply = { status: 404 };
/** The lease has ended, for any reason. */
export const conflict: HttpReply = { status: 409 };
/** Nothing to do: the literal `null`, never 204. */
export const noJob: HttpReply = { status: 200, headers: claimHeaders, body: "null" };
export const yes: HttpReply = { status: 200, headers: jsonHeaders, body: "true" };
export const no: HttpReply = { status: 200, headers: jsonHeaders, body: "false" };
export const emptyList: HttpReply = { status: 200, headers: jsonHeaders, body: "[]" };
