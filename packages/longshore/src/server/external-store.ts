// The store of the option `store`: data in PostgreSQL instead of a folder.

import type { Members } from "../cluster/members.ts";
import { durationMs } from "../core/duration.ts";
import { LongshoreError } from "../core/errors.ts";
import type { Store } from "../engine/store.ts";
import { isAddress, readAddress } from "../store/postgres/address.ts";
import type { SharedRows } from "../store/postgres/shared-rows.ts";
import type { ServeOptions } from "./config.ts";

export interface ExternalStore {
  /** The address without its password. */
  readonly shown: string;
  /** Texts that must not appear in a log. */
  readonly secrets: readonly string[];
  /** Makes this server the owner of the data. Rejects with LONGSHORE_CONFLICT while another server owns it. */
  open(options: { readonly warn?: (message: string) => void; readonly node?: string }): Promise<Store>;
  /** The servers that share it. */
  members(): Promise<Members>;
  /** Its rows, for a server that does not own them. */
  sharedRows(): Promise<SharedRows>;
}

/** A busy machine may not renew a shorter lease in time. */
const leaseMsMin = 1_000;
/** A longer lease has no advantage, and other servers would wait longer for the data of a server that hangs. */
const leaseMsMax = 60_000;

/** Whether a text is an address of PostgreSQL rather than the name of a folder. */
export function isStoreAddress(text: string): boolean {
  return isAddress(text);
}

/** What the command line shows of an address of PostgreSQL, and whether it has a password. Throws LONGSHORE_BAD_CONFIG for another text. */
export function describeStore(url: string): {
  readonly shown: string;
  readonly plain: string;
  readonly schema: string;
  readonly hasPassword: boolean;
} {
  const { shown, plain, schema, secrets } = readAddress(url);
  return { shown, plain, schema, hasPassword: secrets.length > 0 };
}

/** Our own texts never contain the password, but errors of other programs may. So it is removed from the log, if it has this length or more. */
const hiddenCharsMin = 8;

/** Null when the data are in a folder or in memory. Throws LONGSHORE_BAD_CONFIG for options that exclude each other. */
export function externalStoreOf({ store: url, lease, data, ephemeral, acceptDamage }: ServeOptions): ExternalStore | null {
  if (url === undefined) {
    if (lease !== undefined) throw bad("lease is only for data in PostgreSQL. Remove lease, or give store as well.");
    return null;
  }
  const others = Object.entries({ data, ephemeral, acceptDamage }).filter(([, value]) => value !== undefined && value !== false);
  if (others.length > 0)
    throw bad(
      `store and ${others.map(([name]) => name).join(", ")} exclude each other: data are in PostgreSQL, or in a folder, or in memory.`,
    );
  const leaseMs = lease === undefined ? undefined : durationMs(lease, "lease");
  if (leaseMs !== undefined && (leaseMs < leaseMsMin || leaseMs > leaseMsMax))
    throw bad(`lease is ${JSON.stringify(lease)}, expected ${leaseMsMin / 1_000}s to ${leaseMsMax / 1_000}s.`);
  const { shown, secrets } = readAddress(url);
  return {
    shown,
    // Removing a short password would also remove harmless words.
    secrets: secrets.filter((text) => text.length >= hiddenCharsMin && !shown.includes(text)),
    async open({ warn, node }) {
      const { openPostgres } = await import("../store/postgres/store.ts");
      return openPostgres({ url, leaseMs, warn, node });
    },
    async members() {
      const { openMembers } = await import("../store/postgres/members.ts");
      return openMembers(url);
    },
    async sharedRows() {
      const { openSharedRows } = await import("../store/postgres/shared-rows.ts");
      return openSharedRows(url);
    },
  };
}

function bad(message: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message);
}
