// The name of a coordinator's consumer groups.

import { randomBytes } from "node:crypto";
import type { DocumentStore } from "../../../../engine/run/documents.ts";

const kind = "flowkit-cluster";

/** The default is a random name that is stored with the data. So two servers on one broker have different groups, and each gets all records. */
export async function clusterOf(configured: string | null, documents: DocumentStore): Promise<string> {
  if (configured !== null) return configured;
  const fresh = { kind, name: "cluster", version: 1, body: JSON.stringify(randomBytes(3).toString("hex")) };
  await documents.keepDocument(fresh, { unlessThere: true, own: true });
  return JSON.parse((await documents.document(kind, "cluster"))?.body ?? fresh.body) as string;
}
