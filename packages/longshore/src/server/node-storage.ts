// The state of the store, as a node of a cluster reports it. A node can accept work when it, or another node, can perform its requests.

import { type Clock, systemClock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import { untilAborted } from "../core/until-aborted.ts";
import type { Storage } from "../protocols/server-half.ts";

/** The part of a node that is used here. */
export interface AskedNode {
  readonly isServing: boolean;
  program(verb: string, given: readonly unknown[]): Promise<unknown>;
}

/** How long a try may take. Probes of balancers give up after one to a few seconds, so a longer try would report the reason too late. */
const tryMsMax = 900;

/** Without an owner, the reason is known at once. A call for the owner would wait for the next one. */
export function nodeStorage(node: AskedNode, clock: Clock = systemClock): Storage {
  const unavailable = () => (node.isServing ? null : unusable("No node owns the data now."));
  let trying: Promise<unknown> | undefined;
  return {
    get commits() {
      return 0;
    },
    get unavailable() {
      return unavailable();
    },
    look: () => {},
    async tryWrite() {
      const why = unavailable();
      if (why !== null) throw why;
      // All callers share one try, so that their tries do not pile up at an owner that hangs.
      trying ??= node.program("tryWrite", []).finally(() => {
        trying = undefined;
      });
      await within(trying, tryMsMax, clock);
    },
  };
}

async function within(work: Promise<unknown>, msMax: number, clock: Clock): Promise<void> {
  const late = new AbortController();
  const cancel = clock.at(clock.now() + msMax, () => late.abort(unusable(`The owner of the data has not answered within ${msMax} ms.`)));
  try {
    await untilAborted(work, late.signal);
  } finally {
    cancel();
  }
}

function unusable(message: string): LongshoreError {
  return new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", message);
}
