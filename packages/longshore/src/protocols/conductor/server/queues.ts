// The number of waiting tasks on each queue.

import { wholeRow } from "../../../core/slices/slices.ts";
import { sortInSlices } from "../../../core/slices/sort-slices.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { laneName } from "../dialect/placement.ts";
import { json, jsonText, text } from "./replies.ts";
import { listInQuery, neededInQuery, textInQuery } from "./request.ts";

/** Queues that are handled without a turn between them. */
const pieceMax = 1_000;

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

  all = (): Promise<HttpReply> => this.#ofAll((size) => String(size));

  verbose = (): Promise<HttpReply> => this.#ofAll((size) => `{"a":{"size":${size},"uacked":0}}`);

  /** The server itself queues waiting tasks, so there is nothing to do: returns their number. */
  requeue = async (request: HttpRequest): Promise<HttpReply> => {
    return text(String((await this.#deps.reader.queued()).get(request.params.type as string) ?? 0));
  };

  /** Every queue that was ever polled or had tasks, by name; delayed tasks count as well. There may be a hundred thousand. */
  async #ofAll(write: (size: number) => string): Promise<HttpReply> {
    const { reader } = this.#deps;
    const turns = { turn: (rows: number) => reader.turn(rows / wholeRow) };
    const queued = await reader.queued();
    const names = new Set(await reader.laneNames());
    let passed = 0;
    for (const name of queued.keys()) {
      if (passed++ % pieceMax === 0) await turns.turn(pieceMax);
      names.add(name);
    }
    const sorted = await sortInSlices([...names], (a, b) => (a < b ? -1 : 1), turns);
    const pieces: string[] = [];
    for (let at = 0; at < sorted.length; at += pieceMax) {
      await turns.turn(pieceMax);
      const piece = sorted.slice(at, at + pieceMax);
      pieces.push(piece.map((name) => `${JSON.stringify(name)}:${write(queued.get(name) ?? 0)}`).join());
    }
    return jsonText(`{${pieces.join()}}`);
  }
}
