// The number of waiting tasks on each queue.

import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { laneName } from "../dialect/placement.ts";
import { json, text } from "./replies.ts";
import { listInQuery, neededInQuery, textInQuery } from "./request.ts";

export class Queues {
  readonly #deps: { readonly reader: Reader };

  constructor(deps: { readonly reader: Reader }) {
    this.#deps = deps;
  }

  size = async (request: HttpRequest): Promise<HttpReply> => {
    const queue = laneName(neededInQuery(request, "taskType"), textInQuery(request, "domain"));
    return json((await this.#deps.reader.queued()).get(queue) ?? 0);
  };

  sizes = async (request: HttpRequest): Promise<HttpReply> => {
    neededInQuery(request, "taskType");
    const types = listInQuery(request, "taskType");
    const queued = await this.#deps.reader.queued();
    return json(Object.fromEntries(types.filter((type) => type !== "").map((type) => [type, queued.get(type) ?? 0])));
  };

  all = async (): Promise<HttpReply> => json(Object.fromEntries(await this.#sizes()));

  verbose = async (): Promise<HttpReply> =>
    json(Object.fromEntries((await this.#sizes()).map(([name, size]) => [name, { a: { size, uacked: 0 } }])));

  /** The server itself queues waiting tasks, so there is nothing to do: returns their number. */
  requeue = async (request: HttpRequest): Promise<HttpReply> => {
    return text(String((await this.#deps.reader.queued()).get(request.params.type as string) ?? 0));
  };

  /** Every queue that was ever polled or had tasks, by name; delayed tasks count as well. */
  async #sizes(): Promise<[string, number][]> {
    const sizes = new Map(Array.from(await this.#deps.reader.laneNames(), (name) => [name, 0]));
    for (const [name, size] of await this.#deps.reader.queued()) sizes.set(name, size);
    return [...sizes].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}
