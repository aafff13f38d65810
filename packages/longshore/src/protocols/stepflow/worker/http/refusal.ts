// A refusal with an HTTP status. The runtime reads the body, whatever the status is; the status is for proxies, balancers and people.

import type { RpcFault } from "../../wire/codes.ts";
import { RpcError } from "../../wire/rpc-error.ts";

export class HttpRefusal extends RpcError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}, fault: RpcFault = "invalidRequest") {
    super(fault, message, fault === "server" ? { retryable: true } : undefined);
    this.status = status;
    this.headers = headers;
  }
}

/** The worker cannot take this request now; a later try may succeed. */
export function busy(message: string): HttpRefusal {
  return new HttpRefusal(503, message, { "retry-after": "1" }, "server");
}
