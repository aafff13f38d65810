// Ids that a request makes. Sometimes it is not known whether a request was performed, and it is performed again. Then it makes the same
// ids again, so everything that it starts is started only once.

import { AsyncLocalStorage } from "node:async_hooks";
import { idFrom, type MakeId, msOf } from "./ids.ts";

/** A request that a node passes on to the owner of the data. */
export interface TrackedRequest {
  /** One of our ids, made when the request arrived. */
  readonly id: string;
  /** True when an earlier owner may have performed it. */
  readonly isRepeat: boolean;
}

interface Performed extends TrackedRequest {
  made: number;
  /** Work that a request has begun may continue after its answer. Its order is not known, so its ids do not follow from the request. */
  isAnswered: boolean;
}

export class RequestIds {
  readonly #makeId: MakeId;
  readonly #requests = new AsyncLocalStorage<Performed>();
  /** The number of requests that are being performed. */
  #within = 0;

  constructor(makeId: MakeId) {
    this.#makeId = makeId;
  }

  /** Performs `work`, whose ids follow from the id of the request until it is answered. */
  async within<T>({ id, isRepeat }: TrackedRequest, work: () => T | Promise<T>): Promise<T> {
    const request: Performed = { id, isRepeat, made: 0, isAnswered: false };
    this.#within++;
    try {
      return await this.#requests.run(request, work);
    } finally {
      request.isAnswered = true;
      // Up to Node 22, every promise of the process costs more while a storage is enabled. `run` enables it again.
      if (--this.#within === 0) this.#requests.disable();
    }
  }

  /** A new id of the current request. Outside of tracked requests, a random one. */
  readonly make: MakeId = (nowMs) => {
    const request = this.#current();
    if (request === undefined) return this.#makeId(nowMs);
    const { id, made } = request;
    request.made++;
    return made === 0 ? id : idFrom(`${id} ${made}`, msOf(id));
  };

  /** Returns whether an earlier try of the current request may have started the same things. */
  readonly isRepeat = (): boolean => this.#current()?.isRepeat === true;

  /** The request that is being performed, if it is a tracked one. */
  readonly current = (): TrackedRequest | undefined => this.#current();

  #current(): Performed | undefined {
    const request = this.#requests.getStore();
    return request?.isAnswered ? undefined : request;
  }
}
