// How to connect to Kafka. A file of its own, so that its types do not need the types of Kafka's client.

import type { BusOptions } from "../bus.ts";

export interface KafkaBusOptions extends BusOptions {
  /** `host:port` of some brokers; they name the others. */
  readonly brokers: readonly string[];
  readonly clientId?: string;
  /** Speak TLS: true, or as Node's `tls.connect` takes it. */
  readonly ssl?: boolean | KafkaTls;
  readonly sasl?: KafkaSasl;
  /** The number of partitions of a new topic, and so the most members of a group that work at once. */
  readonly partitions?: number;
  /** Copies of topics that are created; as the brokers have it when absent. */
  readonly replicas?: number;
  /** The group that reads this topic. Records go only to partitions that its members read: they may not know new partitions yet. */
  readersOf?(topic: string): string | undefined;
  /** How long `publish` keeps trying before it rejects. */
  readonly patienceMs?: number;
  /** How long a member may be silent before its records go to others. */
  readonly sessionMs?: number;
  /** The interval of heartbeats, which also report that members joined or left; a third of the session when absent. */
  readonly beatMs?: number;
  /** How often the leader of a group looks whether partitions were added to its topics. */
  readonly lookMs?: number;
}

export interface KafkaTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface KafkaSasl {
  readonly mechanism: "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" | "OAUTHBEARER";
  readonly username?: string;
  readonly password?: string;
  readonly token?: string;
}
