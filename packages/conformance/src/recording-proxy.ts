// A proxy between a peer and its server. It records each request with its response, and can delay or cut the traffic like a bad network.
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Answer, Request } from "./exchange.ts";
import type { Stage } from "./stage.ts";

export interface Exchange {
  /** Its number, in the order in which requests arrived. */
  place: number;
  request: Required<Request>;
  answer: Answer;
}

export interface RecordingProxy {
  readonly url: string;
  /** Finished exchanges, in the order of their responses. */
  readonly exchanges: readonly Exchange[];
  /** The paths of requests whose connection to the server broke before the response. */
  readonly broken: readonly string[];
  /** The address to which requests are sent. It may change when the server starts again on another port. */
  forwardTo(url: string): void;
  /** How many requests have no complete response yet. */
  unfinished(): number;
  /** `held` delays requests, `cut` drops their connections, `open` passes on everything, the held requests first. */
  set(state: State): void;
}

type State = "open" | "held" | "cut";

export async function openRecordingProxy(stage: Stage, upstream: string): Promise<RecordingProxy> {
  const exchanges: Exchange[] = [];
  const broken: string[] = [];
  let target = new URL(upstream);
  let state: State = "open";
  let waiting: (() => void)[] = [];
  let begun = 0;
  let ended = 0;

  const server = createServer((incoming, outgoing) => {
    const place = begun++;
    const finished = (exchange: Omit<Exchange, "place">): void => void exchanges.push({ place, ...exchange });
    const relayed = (isAnswered: boolean): void => {
      ended++;
      if (!isAnswered) broken.push(incoming.url ?? "");
    };
    const forward = (): void => void relay(incoming, outgoing, target, finished).then(relayed);
    if (state === "cut") incoming.socket.destroy();
    else if (state === "held") waiting.push(forward);
    else forward();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.onClose(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    broken,
    unfinished: () => begun - ended,
    forwardTo(url) {
      target = new URL(url);
    },
    set(next) {
      state = next;
      if (next === "cut") server.closeAllConnections();
      const released = waiting;
      waiting = [];
      if (next !== "cut") for (const forward of released) forward();
    },
  };
}

/** Returns false when the server broke the connection. */
async function relay(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: URL,
  finished: (exchange: Omit<Exchange, "place">) => void,
): Promise<boolean> {
  let isPeerGone = false;
  try {
    const body = await readAll(incoming);
    const { method = "GET", url: path = "/" } = incoming;
    const headers = ownHeaders(incoming);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const forwarded = request({ hostname: target.hostname, port: target.port, method, path, headers, agent: false }, resolve);
      forwarded.on("error", reject);
      // When the client disconnects, the server behind the proxy must see this, too.
      outgoing.on("close", () => {
        isPeerGone = true;
        forwarded.destroy();
      });
      forwarded.end(body);
    });
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    const parts: Buffer[] = [];
    // Each piece is passed on at once, because an event stream stays open while it sends.
    const passOn = async (): Promise<void> => {
      for await (const part of answer) {
        parts.push(part as Buffer);
        outgoing.write(part);
      }
    };
    // A client may disconnect from a stream after the event that it needs. Its exchange then counts as finished.
    const isStream = String(answer.headers["content-type"]).includes("text/event-stream");
    await passOn().catch((error: unknown) => {
      if (!isStream) throw error;
    });
    finished({
      request: { method, path, headers, body: body.toString("utf8") },
      answer: { status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(parts).toString("utf8") },
    });
    outgoing.end();
    return true;
  } catch {
    // The server is down or has ended. The peer sees what it would see without a proxy: a broken connection.
    outgoing.destroy();
    return isPeerGone;
  }
}

/** The peer's own headers, without those that belong to its connection rather than to its request. */
function ownHeaders(incoming: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (name !== "host" && name !== "connection" && value !== undefined) headers[name] = String(value);
  }
  return headers;
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
