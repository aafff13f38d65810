// Decides which addresses a request may reach whose target comes from data. A name is resolved here and each of its addresses is checked.
// The connection goes to a checked address: the name is not resolved a second time. Every new connection is checked, also after a redirect.

import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import type { buildConnector } from "undici";
import { LongshoreError } from "../../core/errors.ts";
import { shown } from "../../core/text.ts";

/** Addresses that are not public, such as this host, private networks and the metadata of clouds. */
const closed: readonly [address: string, prefix: number, family: "ipv4" | "ipv6"][] = [
  ["0.0.0.0", 8, "ipv4"],
  ["10.0.0.0", 8, "ipv4"],
  ["100.64.0.0", 10, "ipv4"],
  ["127.0.0.0", 8, "ipv4"],
  ["169.254.0.0", 16, "ipv4"],
  ["172.16.0.0", 12, "ipv4"],
  ["192.0.0.0", 24, "ipv4"],
  // Relays from IPv6 to IPv4: a network that still has one would pass a request on.
  ["192.88.99.0", 24, "ipv4"],
  ["192.168.0.0", 16, "ipv4"],
  ["198.18.0.0", 15, "ipv4"],
  ["224.0.0.0", 3, "ipv4"],
  // Unspecified, loopback, and addresses that contain one of IPv4, by any way of translation.
  ["::", 8, "ipv6"],
  ["64:ff9b::", 16, "ipv6"],
  // Addresses that packets do not leave a network for: discarded ones, those of documents, segments of a route.
  ["100::", 64, "ipv6"],
  ["3fff::", 20, "ipv6"],
  ["5f00::", 16, "ipv6"],
  ["2001::", 32, "ipv6"],
  ["2002::", 16, "ipv6"],
  ["fc00::", 7, "ipv6"],
  ["fe80::", 9, "ipv6"],
  ["ff00::", 8, "ipv6"],
];

/** One list for each family: a network of IPv6 would also match addresses of IPv4, as Node maps them. */
const closedLists = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const [address, prefix, family] of closed) closedLists[family].addSubnet(address, prefix, family);

/** A lookup holds one of the four threads of the process that also read and write files. */
const lookupsMax = 2;

type Resolve = (name: string) => Promise<readonly LookupAddress[]>;

export class AddressGuard {
  readonly #names = new Set<string>();
  readonly #open = { ipv4: new BlockList(), ipv6: new BlockList() };
  readonly #resolve: Resolve;
  #isOpen = false;
  #lookups = 0;
  readonly #waiting: (() => void)[] = [];

  /**
   * `allowed`: host names, addresses and networks (`10.1.0.0/16`) that may be reached although they are not public; `*` allows all.
   * Throws LONGSHORE_BAD_CONFIG for an entry that is none of these.
   */
  constructor(allowed: readonly string[], resolve: Resolve = (name) => lookup(name, { all: true })) {
    this.#resolve = resolve;
    for (const entry of allowed) this.#allow(entry.trim().toLowerCase());
  }

  #allow(entry: string): void {
    const [address = "", prefix] = entry.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    const bitsMax = family === "ipv6" ? 128 : 32;
    const bits = prefix === undefined ? bitsMax : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
    if (entry === "*") this.#isOpen = true;
    else if (isIP(address) !== 0 && bits <= bitsMax) this.#open[family].addSubnet(address, bits, family);
    else if (/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(entry)) this.#names.add(entry);
    else {
      const message = `${shown(entry)} is not a target, expected a host name, an address, a network such as 10.1.0.0/16, or *.`;
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", message);
    }
  }

  /** An address of the host that may be reached. Rejects with LONGSHORE_BAD_INPUT when there is none. */
  async addressOf(host: string): Promise<string> {
    const name = host.replace(/^\[|\]$/g, "").toLowerCase();
    const found = isIP(name) !== 0 ? [{ address: name, family: isIP(name) }] : await this.#lookup(name);
    const isNamed = this.#isOpen || this.#names.has(name);
    const allowed = found.find(({ address, family }) => isNamed || this.#mayReach(address, family === 6 ? "ipv6" : "ipv4"));
    if (allowed !== undefined) return allowed.address;
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `The address of ${name} is not public, and the configuration does not allow it`);
  }

  /** The caller limits how many wait. */
  async #lookup(name: string): Promise<readonly LookupAddress[]> {
    if (this.#lookups >= lookupsMax) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#lookups++;
    try {
      return await this.#resolve(name);
    } finally {
      // The next lookup takes over the place of this one.
      const next = this.#waiting.shift();
      if (next === undefined) this.#lookups--;
      else next();
    }
  }

  #mayReach(address: string, family: "ipv4" | "ipv6"): boolean {
    return this.#open[family].check(address, family) || !closedLists[family].check(address, family);
  }

  /** Connects to an address that was checked. The certificate is still checked against the name. */
  connector(base: buildConnector.connector): buildConnector.connector {
    return (options, callback) => {
      const { hostname, servername } = options;
      this.addressOf(hostname).then(
        (address) =>
          base({ ...options, hostname: address, servername: servername ?? (isIP(hostname) === 0 ? hostname : undefined) }, callback),
        (error: Error) => callback(error, null),
      );
    };
  }
}
