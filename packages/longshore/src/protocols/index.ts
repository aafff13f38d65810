// The registry: one line for each protocol, and one line for each type of options or handle that the protocol adds. `server/` and `cli/`
// know protocols only from this file, and use the list in its order.

import { conductorProtocol } from "./conductor/protocol.ts";
import { flowkitProtocol } from "./flowkit/protocol.ts";
import type { FlowkitServing, FlowkitSettings, FlowkitSide } from "./flowkit/server/options.ts";
import { longshoreProtocol } from "./longshore/protocol.ts";
import type { NoFields, Protocol } from "./protocol.ts";
import { stepflowProtocol } from "./stepflow/protocol.ts";
import type { StepflowServing, StepflowSettings } from "./stepflow/server/options.ts";
import { workflowGraphProtocol } from "./workflow-graph/protocol.ts";

/** What the protocols add to the options of `serve()`. */
export interface ProtocolOptions extends NoFields {}
export interface ProtocolOptions extends StepflowServing {}
export interface ProtocolOptions extends FlowkitServing {}

/** What they add to the settings of a configuration file. */
export interface ProtocolSettings extends NoFields {}
export interface ProtocolSettings extends StepflowSettings {}
export interface ProtocolSettings extends FlowkitSettings {}

/** What they add to the server that `serve()` returns. */
export interface ProtocolHandles extends NoFields {}
export interface ProtocolHandles extends FlowkitSide {}

export const protocols: readonly Protocol<ProtocolOptions>[] = [
  workflowGraphProtocol, //
  conductorProtocol,
  stepflowProtocol,
  flowkitProtocol,
  longshoreProtocol,
];
