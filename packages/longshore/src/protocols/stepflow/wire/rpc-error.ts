// An error in a JSON-RPC message or its request. It has no number yet, because numbers differ between dialects (codes.ts).

import type { Json } from "../../../core/json/json.ts";
import type { RpcFault } from "./codes.ts";

export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly fault: RpcFault;
  /** The id of the message; undefined when it has none or it could not be read. */
  readonly id: string | number | undefined;
  readonly data: { readonly [field: string]: Json } | undefined;

  constructor(fault: RpcFault, message: string, data?: { readonly [field: string]: Json }, id?: string | number) {
    super(message);
    this.fault = fault;
    this.data = data;
    this.id = id;
  }

  /** The same error as the answer to this request. */
  about(id: string | number): RpcError {
    return new RpcError(this.fault, this.message, this.data, id);
  }
}
