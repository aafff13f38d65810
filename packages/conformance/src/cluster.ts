// Our server as a cluster of two nodes on PostgreSQL. The first owns the data; programs get the address of the second, so
// their requests and the responses pass through both nodes.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import type { Child } from "./child.ts";
import "./cluster-database.ts";
import { PeerUnavailable } from "./tools.ts";

/** Whether our server is a cluster in this run of the tests. */
export function isCluster(): boolean {
  return inject("clusterDatabase") !== undefined;
}

/** The address of the data that belongs to a folder: a separate schema, whose name is stored in the folder. Undefined for a single server. */
export function sharedStore(folder: string): string | undefined {
  const database = inject("clusterDatabase");
  if (database === undefined) return undefined;
  if ("missing" in database) throw new PeerUnavailable(`MISSING TOOL: ${database.missing}, which holds the data of a cluster.`);
  const file = join(folder, "schema");
  if (!existsSync(file)) writeFileSync(file, `conformance_${randomBytes(8).toString("hex")}`);
  return `${database.url}${readFileSync(file, "utf8")}`;
}

/** Both nodes as one server: signals go to both nodes, and the server has ended when both have. */
export function bothNodes(owner: Child, other: Child): Child {
  const ended = Promise.all([other.ended, owner.ended]).then(([how]) => how);
  return {
    name: "longshore start, two nodes",
    pid: other.pid,
    output: () => `${owner.output()}${other.output()}`,
    printed: (pattern) => other.printed(pattern),
    hasEnded: () => owner.hasEnded() && other.hasEnded(),
    ended,
    signal(signal) {
      owner.signal(signal);
      other.signal(signal);
    },
    async stop() {
      await other.stop();
      await owner.stop();
      return ended;
    },
  };
}
