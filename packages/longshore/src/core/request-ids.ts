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

export class RequestIds {
  readonly #makeId: MakeId;
  readonly #requests = new AsyncLocalStorage<TrackedRequest & { made: number }>();

  constructor(makeId: MakeId) {
    this.#makeId = makeId;
  }

  /** Performs `work`, whose ids follow from the id of the request. */
  within<T>({ id, isRepeat }: TrackedRequest, work: () => T): T {
    return this.#requests.run({ id, isRepeat, made: 0 }, work);
  }

  /** Outside of tracked requests, a new id. */
  readonly make: MakeId = (nowMs) => {
    const request = this.#requests.getStore();
    if (request === undefined) return this.#makeId(nowMs);
    const { id, made } = request;
    request.made++;
    return made === 0 ? id : idFrom(`${id} ${made}`, msOf(id));
  };

  /** Whether what the current request starts may have been started before. */
  readonly isRepeat = (): boolean => this.#requests.getStore()?.isRepeat === true;
}
