// Reads the body of a request, within the limits of one and of all that are being received.

import type { IncomingMessage } from "node:http";
import type { ByteBudget } from "../../../../core/byte-budget.ts";
import { ReceivedBody, tooLarge } from "../../../../net/http/received-body.ts";
import { RpcError } from "../../wire/rpc-error.ts";
import { busy, HttpRefusal } from "./refusal.ts";

/** The body as text; undefined when the caller went away meanwhile. Rejects when it is too large, there is no room for it, or it is no UTF-8. */
export async function bodyOf(request: IncomingMessage, bytesMax: number, budget: ByteBudget): Promise<string | undefined> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw refused(tooLarge(bytesMax));
  const bytes = await collect(request, bytesMax, budget);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new RpcError("parse", "The body is not UTF-8.");
  }
}

/** By events, not by a loop: leaving a loop early would end the connection that the refusal travels on. */
function collect(request: IncomingMessage, bytesMax: number, budget: ByteBudget): Promise<Buffer | undefined> {
  const body = new ReceivedBody(bytesMax);
  let held = 0;
  let refusal: HttpRefusal | undefined;
  return new Promise<Buffer | undefined>((resolve, reject) => {
    request.on("data", (chunk: Buffer) => {
      if (refusal !== undefined) return;
      refusal = refusalOf(chunk);
      if (refusal !== undefined) reject(refusal);
    });
    request.once("end", () => resolve(body.bytes()));
    request.once("close", () => resolve(undefined));
  }).finally(() => budget.give(held));

  function refusalOf(chunk: Buffer): HttpRefusal | undefined {
    if (!budget.take(chunk.length)) return full(budget.max);
    held += chunk.length;
    const why = body.push(chunk);
    return why === undefined ? undefined : refused(why);
  }
}

/** What is left of the body is not worth the wait. */
const closing = { connection: "close" };

function refused(why: string): HttpRefusal {
  return new HttpRefusal(413, why, closing);
}

function full(bytes: number): HttpRefusal {
  const { status, message, headers, fault } = busy(`The bodies that the worker is receiving have ${bytes} bytes together, the limit.`);
  return new HttpRefusal(status, message, { ...headers, ...closing }, fault);
}
