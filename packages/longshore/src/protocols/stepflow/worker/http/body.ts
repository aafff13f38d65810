// Reads the body of a request, within the limit for one body and the budget for all of them.

import type { IncomingMessage } from "node:http";
import type { ByteBudget } from "../../../../core/byte-budget.ts";
import { ReceivedBody, tooLarge } from "../../../../net/http/received-body.ts";
import { RpcError } from "../../wire/rpc-error.ts";
import { busy, HttpRefusal } from "./refusal.ts";

/**
 * Returns the body as text, or undefined when the caller disconnects. Rejects when it is too large, the budget is used up, or it is not
 * UTF-8.
 */
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

/** Uses events, because leaving a `for await` loop early would end the connection on which the refusal is sent. */
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

/** The connection is closed, so that the rest of the body need not be read. */
const closing = { connection: "close" };

function refused(why: string): HttpRefusal {
  return new HttpRefusal(413, why, closing);
}

function full(bytes: number): HttpRefusal {
  const { status, message, headers, fault } = busy(`The bodies that the worker is receiving have ${bytes} bytes together, the limit.`);
  return new HttpRefusal(status, message, { ...headers, ...closing }, fault);
}
