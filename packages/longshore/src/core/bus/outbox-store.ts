// The port between the outbox (`bus/outbox.ts`) and its store: messages, and what became of each.

export interface OutboxMessage {
  readonly topic: string;
  readonly key: string;
  /** Topic, key and this id together identify a message. */
  readonly dedupId: string;
  readonly value: string;
  /** See `Outgoing`. */
  readonly retry?: number;
}

export interface StoredMessage extends OutboxMessage {
  /** Rises in the order in which messages were added. */
  readonly id: number;
  /** How many tries failed. */
  readonly attempts: number;
  /** The earliest time of the next try. */
  readonly dueAt: number;
}

export type Outcome =
  | { readonly state: "sent" }
  | { readonly state: "pending"; readonly attempts: number; readonly dueAt: number; readonly error: string }
  | { readonly state: "failed"; readonly attempts: number; readonly error: string };

/** The port to a store. Every change is durable when it resolves. */
export interface OutboxStore {
  /** Stores a message that `owner` will send. Returns null when the message was stored before, in any state. */
  add(owner: string, message: OutboxMessage): Promise<StoredMessage | null>;
  /** The pending messages of `owner` after an id, in order. The messages of owners that have left become messages of `owner` first. */
  pending(owner: string, after: number, limit: number): Promise<StoredMessage[]>;
  /** Stores the outcome of a message. */
  settle(message: StoredMessage, outcome: Outcome): Promise<void>;
  /** The owner has stopped: others may take over its messages. */
  leave(owner: string): void;
}
