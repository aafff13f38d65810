// Requests of other nodes that wait at the owner, such as long polls. When a node closes, their routes reply with what they have, and the
// node passes the replies on before it ends.

import type { LinkCall, LinkEnd } from "./link/service.ts";

/** How a route learns that it need not wait any more. */
export interface Wait {
  /** Aborts when the client is gone, when the link breaks and when the node closes. Made on first use: most routes never read it. */
  readonly signal: AbortSignal;
  /** The route has replied. */
  end(): void;
}

export class Waits {
  readonly #byLink = new Map<LinkEnd, Set<AbortController>>();
  readonly #dismissed = new WeakSet<LinkEnd>();

  of(call: Pick<LinkCall, "link" | "signal">): Wait {
    let controller: AbortController | undefined;
    const begin = (): AbortController => {
      const made = new AbortController();
      if (call.signal.aborted || this.#dismissed.has(call.link)) made.abort();
      else {
        call.signal.addEventListener("abort", () => made.abort(), { once: true });
        this.#add(call.link, made);
      }
      return made;
    };
    return {
      get signal() {
        controller ??= begin();
        return controller.signal;
      },
      end: () => this.#remove(call.link, controller),
    };
  }

  /** The node at the other end of this link closes. */
  dismiss(link: LinkEnd): void {
    this.#dismissed.add(link);
    const waiting = this.#byLink.get(link) ?? [];
    this.#byLink.delete(link);
    for (const controller of waiting) controller.abort();
  }

  #add(link: LinkEnd, controller: AbortController): void {
    const waiting = this.#byLink.get(link) ?? new Set();
    this.#byLink.set(link, waiting.add(controller));
  }

  #remove(link: LinkEnd, controller: AbortController | undefined): void {
    const waiting = this.#byLink.get(link);
    if (controller === undefined || waiting === undefined) return;
    waiting.delete(controller);
    if (waiting.size === 0) this.#byLink.delete(link);
  }
}
