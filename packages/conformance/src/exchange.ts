// Sends one HTTP request exactly as the test wrote it, and returns the response as it was received: adds no header, and parses no body.
import { type IncomingHttpHeaders, request } from "node:http";

export interface Request {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

export function exchange(url: string, { method, path, headers, body }: Request): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const outgoing = request(
      { hostname, port, path, method, agent: false, headers: { ...headers, ...lengthOf(method, body) } },
      (incoming) => {
        const parts: Buffer[] = [];
        incoming.on("data", (part: Buffer) => parts.push(part));
        incoming.on("error", reject);
        incoming.on("end", () =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(parts).toString("utf8") }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Without this header, Node would send a body in chunks, and an empty POST without any length. */
function lengthOf(method: string, body: string | undefined): Record<string, string> {
  if (body !== undefined) return { "content-length": String(Buffer.byteLength(body)) };
  return method === "POST" ? { "content-length": "0" } : {};
}
