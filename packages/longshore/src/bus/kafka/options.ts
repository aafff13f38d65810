// The options of a Kafka connection. A separate file, so that its types do not need the types of Kafka's client.

import type { BusOptions } from "../../core/bus/bus.ts";

export interface KafkaBusOptions extends BusOptions {
  /** `host:port` of some brokers; the client finds the others through them. */
  readonly brokers: readonly string[];
  readonly clientId?: string;
  /** Use TLS: true, or the options of Node's `tls.connect`. */
  readonly ssl?: boolean | KafkaTls;
  readonly sasl?: KafkaSasl;
  /** The number of partitions of a new topic. At most this many members of a group work at the same time. */
  readonly partitions?: number;
  /** The number of replicas of new topics. Default: the brokers' setting. */
  readonly replicas?: number;
  /**
   * The group that reads this topic. Its members may not know new partitions yet, so records are sent only to partitions that they read.
   */
  readersOf?(topic: string): string | undefined;
  /** How long `publish` keeps trying before it rejects. */
  readonly patienceMs?: number;
  /** How long a member may be silent before other members get its records. */
  readonly sessionMs?: number;
  /** The interval of heartbeats. Their replies also report that members joined or left. Default: a third of the session. */
  readonly beatMs?: number;
  /** How often the leader of a group checks whether its topics got more partitions. */
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
