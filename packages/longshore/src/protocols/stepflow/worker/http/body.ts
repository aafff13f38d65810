// Reads the body of a request, within a limit.

import type { IncomingMessage } from "node:http";
import { RpcError } from "../../wire/rpc-error.ts";
import { HttpRefusal } from "./refusal.ts";

/** The body as text; undefined when the caller went away meanwhile. Rejects when it is too large or no UTF-8. */
export async function bodyOf(request: IncomingMessage, bytesMax: number): Promise<string | undefined> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  const chunks = await collect(request, bytesMax);
  if (chunks === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  } catch {
    throw new RpcError("parse", "The body is not UTF-8.");
  }
}

/** By events, not by a loop: leaving a loop early would end the connection that the refusal travels on. */
function collect(request: IncomingMessage, bytesMax: number): Promise<Buffer[] | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bytesMax) chunks.push(chunk);
      else reject(tooLarge(bytesMax));
    });
    request.once("end", () => resolve(chunks));
    request.once("close", () => resolve(undefined));
  });
}

function tooLarge(bytesMax: number): HttpRefusal {
  // What is left of it is not worth the wait.
  return new HttpRefusal(413, `The body is larger than ${bytesMax} bytes.`, { connection: "close" });
}
