// Plain HTTP over keep-alive connections. It uses no code of the product, so that the tests see what any client would see.
import { Agent, type IncomingHttpHeaders, request as send } from "node:http";

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

interface RequestOptions {
  headers?: Record<string, string>;
  /** Aborting it closes the socket. */
  signal?: AbortSignal | undefined;
}

export interface Connection {
  /** Rejects when no complete response arrived: the request may or may not have been performed. */
  request(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<Answer>;
  close(): void;
}

/** Longer than any answer of a healthy server, shorter than a test: a stuck request must not block its worker without a limit. */
const ANSWER_MS_MAX = 10_000;

export function connect(url: string, sockets: number): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets });
  return {
    request: (method, path, body, { headers, signal } = {}) =>
      new Promise((resolve, reject) => {
        const payload = body === undefined ? undefined : JSON.stringify(body);
        const sent = send(new URL(path, url), {
          agent,
          method,
          headers: {
            ...(payload === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(payload) }),
            ...headers,
          },
          signal: signal ? AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]) : AbortSignal.timeout(ANSWER_MS_MAX),
        });
        sent.on("error", reject);
        sent.on("response", (answer) => {
          const chunks: Buffer[] = [];
          answer.on("data", (chunk: Buffer) => chunks.push(chunk));
          answer.on("error", reject);
          answer.on("end", () =>
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks).toString("utf8") }),
          );
        });
        sent.end(payload);
      }),
    close: () => agent.destroy(),
  };
}
