// A gRPC call on its way from the node that received it to the owner of the data, as JSON.

import type { CarriedCaller } from "./carried-request.ts";

export interface CarriedCall {
  readonly path: string;
  /** In base64. */
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly caller: CarriedCaller;
  readonly authority?: string;
  readonly peer: string;
  readonly deadline?: number;
  /** One of our ids, made by the node. */
  readonly id: string;
  /** True when the call was begun before under the same id. */
  readonly isRepeat?: true;
}
