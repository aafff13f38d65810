// Ids that a request makes. A request that is performed again, because it is not known whether it was performed before, makes the same ids
// again: so what it starts is started once.

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
  /** Work that a request has begun may go on after its answer, in an order of its own: its ids do not follow from the request. */
  isAnswered: boolean;
}

export class RequestIds {
  readonly #makeId: MakeId;
  readonly #requests = new AsyncLocalStorage<Performed>();

  constructor(makeId: MakeId) {
    this.#makeId = makeId;
  }

  /** Performs `work`, whose ids follow from the id of the request until it is answered. */
  async within<T>({ id, isRepeat }: TrackedRequest, work: () => T | Promise<T>): Promise<T> {
    const request: Performed = { id, isRepeat, made: 0, isAnswered: false };
    try {
      return await this.#requests.run(request, work);
    } finally {
      request.isAnswered = true;
    }
  }

  /** Outside of tracked requests, a new id. */
  readonly make: MakeId = (nowMs) => {
    const request = this.#current();
    if (request === undefined) return this.#makeId(nowMs);
    const { id, made } = request;
    request.made++;
    return made === 0 ? id : idFrom(`${id} ${made}`, msOf(id));
  };

  /** Whether what the current request starts may have been started before. */
  readonly isRepeat = (): boolean => this.#current()?.isRepeat === true;

  /** The request that is being performed, if it is a tracked one. */
  readonly current = (): TrackedRequest | undefined => this.#current();

  #current(): Performed | undefined {
    const request = this.#requests.getStore();
    return request?.isAnswered ? undefined : request;
  }
}
