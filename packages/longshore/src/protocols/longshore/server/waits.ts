// Requests that wait for the end of a run or task. They stop waiting after a time, when the client disconnects, or when the server closes.

import { type GiveUp, whenAborted } from "../../../core/results.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import type { ProtocolEngine } from "../../server-half.ts";

type WaitDeps = Pick<ProtocolEngine, "board" | "clock">;

/** The same as a signal, for waits that need nothing else. */
export function givingUpSignal({ board, clock }: WaitDeps, request: HttpRequest, waitMs: number): AbortSignal {
  const over = new AbortController();
  clock.at(clock.now() + waitMs, () => over.abort());
  return AbortSignal.any([request.gone, board.dismissed, over.signal]);
}

/** Call this only for a request that waits: it reads `request.gone`, and this releases what the request occupies. */
export function givingUp({ board, clock }: WaitDeps, request: HttpRequest, waitMs: number): GiveUp {
  const over = whenAborted(AbortSignal.any([request.gone, board.dismissed]));
  return (leave) => {
    const stopTimer = clock.at(clock.now() + waitMs, leave);
    const stop = over(leave);
    return () => {
      stopTimer();
      stop();
    };
  };
}
