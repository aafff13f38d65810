// The port to the list of nodes: which nodes exist, and which one owns the data. A database implements it.

/** A node as its row shows it. */
export interface Member {
  readonly id: string;
  /** Where other nodes reach it. */
  readonly url: string;
  readonly version: string;
  /** The versions of the link that it speaks. */
  readonly speaks: readonly number[];
  readonly startedAt: number;
  readonly seenAt: number;
  readonly isOwner: boolean;
  /** Of the owner: counts the owners of the data. */
  readonly epoch: number | null;
  /** Of the owner: how long its lease lasts without a renewal. */
  readonly leaseMs: number | null;
}

/** The node that owns the data. */
export interface OwnerView {
  readonly node: string;
  readonly url: string;
  /** Counts the owners of the data. */
  readonly epoch: number;
}

export interface Ownership {
  /** Null when no node owns the data, or the owner is not in the list. */
  readonly owner: OwnerView | null;
  /** True when a node may take over: no node owns the data, or the owner has lost its lock or its lease. */
  readonly isFree: boolean;
}

export interface Members {
  /** 32 bytes that every node of the cluster reads. With them, nodes prove to each other that they belong to it. */
  readonly secret: Uint8Array;
  /** The address of this machine as the database sees it; null for a connection without one. */
  readonly address: string | null;
  look(): Promise<Ownership>;
  /** Adds this node to the list, or renews its row. */
  announce(node: Pick<Member, "id" | "url" | "version" | "speaks">): Promise<void>;
  list(): Promise<Member[]>;
  /** Removes this node from the list. */
  leave(id: string): Promise<void>;
  close(): Promise<void>;
}
