// The port between the runner and a protocol, published as `longshore/transport`: for authors who implement a protocol of their own for
// `work()`.

export type { TransportEvent, TransportEventName } from "./runner/events.ts";
export type {
  Assignment,
  BeatAnswer,
  Call,
  Capabilities,
  Control,
  HoldTerms,
  LogBatch,
  LogEntry,
  PartReader,
  ReportAnswer,
  ReportTries,
  Slot,
  Transport,
  TransportHost,
  TransportSlots,
  TransportSource,
} from "./runner/transport.ts";
