// The clock of a client: the timers that every JavaScript runtime has. They keep the process alive, because a caller waits for them.

import type { Clock } from "../core/clock.ts";

/** Longer delays overflow the timers of browsers and Node. */
const delayMsMax = 2_147_483_647;

export const timers: Clock = {
  now: () => Date.now(),
  at(atMs, fn) {
    let timer: ReturnType<typeof setTimeout>;
    const arm = () => {
      const wait = Math.max(0, atMs - Date.now());
      timer = setTimeout(() => (Date.now() < atMs ? arm() : fn()), Math.min(wait, delayMsMax));
    };
    arm();
    return () => clearTimeout(timer);
  },
};
