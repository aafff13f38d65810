// Requests that wait for an end: until it comes, for a time, or while the client and the server are there.

import { type GiveUp, whenAborted } from "../../../core/results.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import type { ProtocolEngine } from "../../server-half.ts";

type WaitDeps = Pick<ProtocolEngine, "board" | "clock">;

/** Reads `gone`, which frees what the request occupies: it is called only for a request that waits. */
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
