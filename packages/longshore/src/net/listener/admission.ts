// Limits concurrent requests. Every connection has a few places of its own, so a client that waits for its responses is never refused.
// Further requests, such as pipelined ones, take places from a shared pool. One connection or token gets only a share of the pool. Requests
// that need no token have a small share, so half-sent requests cannot use up the rest. Vital actions (health, metrics, cancellation) have a
// reserve above each of these limits.

import { type Action, actions } from "../../core/actions.ts";
import type { Problem } from "../http/http.ts";
import type { Connection } from "./connections.ts";
import type { HttpLimits } from "./limits.ts";
import { overloaded } from "./problems.ts";

/** A request or call that may hold a place of the pool. */
export interface Placed {
  /** The account that the place counts for; undefined while the request uses a place of its connection. */
  place: string | undefined;
}

export type AdmissionLimits = Pick<
  HttpLimits,
  "inFlight" | "inFlightOwn" | "inFlightConnection" | "inFlightToken" | "inFlightOpen" | "inFlightReserve"
>;

/** Names of accounts that no token can have, because token names have no colon. */
const openCallers = ":open";
const anyCaller = ":any";

export class Admission {
  readonly #limits: AdmissionLimits;
  /** Used places of the pool, by account. Absent means none. */
  readonly #used = new Map<string, number>();
  #total = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** The number of used places of the pool. */
  get pooled(): number {
    return this.#total;
  }

  /**
   * Refuses a request, or gives it a place. The request already counts as one of its connection. `token` is the name of its token;
   * undefined when none was needed.
   */
  enter(connection: Connection, request: Placed, token: string | undefined, action: Action): Problem | undefined {
    const { inFlight, inFlightOwn, inFlightConnection, inFlightReserve } = this.#limits;
    if (!connection.known) connection.known = actions[action].who !== "anyone";
    if (connection.underWay <= inFlightOwn) return undefined;
    const more = actions[action].vital ? inFlightReserve : 0;
    if (connection.underWay > inFlightConnection + more) return overloaded("this connection", inFlightConnection);
    if (this.#total >= inFlight + more) return overloaded("the server", inFlight);
    const payer = token ?? (actions[action].who === "anyone" ? openCallers : anyCaller);
    const used = this.#used.get(payer) ?? 0;
    const most = this.#mostOf(payer);
    if (used >= most + more) return overloaded(payer === openCallers ? "callers without a token" : "this token", most);
    this.#used.set(payer, used + 1);
    this.#total++;
    request.place = payer;
    return undefined;
  }

  /** The request is over. Calling it again has no effect. */
  leave(request: Placed): void {
    const { place } = request;
    if (place === undefined) return;
    request.place = undefined;
    this.#total--;
    const left = (this.#used.get(place) ?? 0) - 1;
    if (left > 0) this.#used.set(place, left);
    else this.#used.delete(place);
  }

  /** On a server without tokens, all callers share one account, and only their connections distinguish them. */
  #mostOf(payer: string): number {
    if (payer === anyCaller) return this.#limits.inFlight;
    return payer === openCallers ? this.#limits.inFlightOpen : this.#limits.inFlightToken;
  }
}
