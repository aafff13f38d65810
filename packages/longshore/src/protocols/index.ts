// The registry: one line a protocol. `server/` and `cli/` know protocols by this list alone, and walk it in its order.

import { conductorProtocol } from "./conductor/protocol.ts";
import { flowkitProtocol } from "./flowkit/protocol.ts";
import { longshoreProtocol } from "./longshore/protocol.ts";
import type { Protocol } from "./protocol.ts";
import { stepflowProtocol } from "./stepflow/protocol.ts";
import { workflowGraphProtocol } from "./workflow-graph/protocol.ts";

const registry = [
  workflowGraphProtocol, //
  conductorProtocol,
  stepflowProtocol,
  flowkitProtocol,
  longshoreProtocol,
] as const;

type Registered = (typeof registry)[number];
type OptionsOf<P> = P extends Protocol<infer Options, infer _Handle> ? Options : never;
type HandleOf<P> = P extends Protocol<infer _Options, infer Handle> ? Handle : never;
type All<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer Intersection) => void ? Intersection : never;

/** What the protocols add to the options of `serve()`. */
export type ProtocolOptions = All<OptionsOf<Registered>>;
/** What they add to the server that `serve()` returns. */
export type ProtocolHandles = All<HandleOf<Registered>>;

export const protocols: readonly Protocol<ProtocolOptions>[] = registry;
