// A `fetch` that calls the routes of this server without a socket. It serves programs in the process of a cluster node, because the node may not own
// the data.

import { Readable } from "node:stream";
import { everyone } from "../core/actions.ts";
import { LongBytes } from "../core/long-bytes.ts";
import type { EventSink, HttpReply, HttpRequest, RouteGroup, ServerSentEvent } from "../net/http/http.ts";
import { problemOf } from "../net/listener/problems.ts";
import { createRouter, type Match } from "../net/listener/router.ts";

/** The address may be any, because only its path and query are read. */
export const ownAddress = "http://localhost";

/** `fallback` refuses requests for unknown paths. */
export function routeFetch(groups: readonly RouteGroup[], fallback: RouteGroup): typeof fetch {
  const router = createRouter(groups, fallback);
  return async (input, init = {}) => {
    const url = new URL(String(input));
    const method = init.method ?? "GET";
    const match = router.find(method, url.pathname);
    const gone = init.signal ?? new AbortController().signal;
    gone.throwIfAborted();
    return responseOf(await replyOf(match, requestOf(url, { ...init, method }, match, gone)), gone);
  };
}

async function replyOf({ entry, group }: Match, request: HttpRequest): Promise<HttpReply> {
  if (entry === undefined)
    return group.refuse({ kind: "not-found", status: 404, message: `There is nothing at ${request.path}.` }, undefined);
  try {
    return await entry.route.handle(request);
  } catch (error) {
    return group.thrown?.(error) ?? group.refuse(problemOf(error).problem, entry.route);
  }
}

function requestOf(url: URL, { method = "GET", headers, body }: RequestInit, { entry, values }: Match, gone: AbortSignal): HttpRequest {
  const names = entry?.names ?? [];
  return {
    ...{ method, path: url.pathname, query: url.searchParams, caller: everyone, gone, parsed: undefined },
    params: Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(values[at] as string)])),
    headers: Object.fromEntries(new Headers(headers)),
    text: typeof body === "string" ? body : "",
    stream: Readable.from([]),
    streamText: async () => "",
  };
}

function responseOf({ status, headers, body, events }: HttpReply, gone: AbortSignal): Response {
  const init = { status, headers: { ...headers } };
  if (events !== undefined) return new Response(streamOf(events, gone), init);
  if (body instanceof Readable) return new Response(Readable.toWeb(body) as ReadableStream, init);
  return new Response(body instanceof LongBytes ? body.subarray(0, body.length) : (body ?? null), init);
}

/** How many frames may wait for a reader. */
const framesMax = 100;

function streamOf(events: (sink: EventSink) => void, gone: AbortSignal): ReadableStream<Uint8Array> {
  const left = new AbortController();
  let drained = () => {};
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const isFull = () => (controller.desiredSize ?? 0) <= 0;
        events({
          send(event) {
            if (isFull()) return false;
            controller.enqueue(Buffer.from(frameOf(event)));
            return true;
          },
          get full() {
            return isFull();
          },
          drained: () =>
            new Promise((resolve) => {
              drained = resolve;
            }),
          end: () => (left.signal.aborted || gone.aborted ? undefined : controller.close()),
          gone: AbortSignal.any([left.signal, gone]),
        });
        gone.addEventListener("abort", () => controller.error(gone.reason), { once: true });
      },
      pull: () => drained(),
      cancel: () => left.abort(),
    },
    new CountQueuingStrategy({ highWaterMark: framesMax }),
  );
}

/** Data is JSON, which has no line breaks. */
function frameOf({ event, id, data }: ServerSentEvent): string {
  return `${event === undefined ? "" : `event: ${event}\n`}${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`;
}
