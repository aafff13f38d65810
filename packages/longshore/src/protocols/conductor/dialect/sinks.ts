// Where events go and come from: `<kind>:<name>`.

/** Kinds of Conductor that need a service to which this server sends no events. */
const foreign: ReadonlyMap<string, string> = new Map([
  ["kafka", "it exchanges no events with Kafka"],
  ["nats", "it exchanges no events with NATS"],
  ["jsm", "it exchanges no events with NATS JetStream"],
  ["sqs", "it has no client for Amazon SQS"],
  ["amqp", "it has no client for AMQP"],
  ["amqp_queue", "it has no client for AMQP"],
  ["amqp_exchange", "it has no client for AMQP"],
  ["nats_stream", "NATS Streaming is no longer maintained"],
]);

/** Why this server cannot send to a sink, or get events from it; undefined for a sink that it knows, or learns only in a run. */
export function unsupportedSink(sink: string): string | undefined {
  return foreign.get(kindOfSink(sink));
}

export function kindOfSink(sink: string): string {
  return sink.split(":", 1)[0] as string;
}

/** The name of an event: of a sink `conductor`, with the workflow and the task that send it. */
export function eventOfSink(sink: string, { workflow, reference }: { workflow: string; reference: string }): string {
  if (sink === "conductor") return `conductor:${workflow}:${reference}`;
  return sink.startsWith("conductor:") ? `conductor:${workflow}:${sink.slice("conductor:".length)}` : sink;
}
