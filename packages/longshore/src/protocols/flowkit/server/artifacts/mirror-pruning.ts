// Removes the documents of runs that retention has removed. Retention does not report its removals. Instead, MongoDB is searched
// continuously, in small steps, for runs that do not exist any more. So a crash loses nothing, and no state is needed.

import { randomUUID } from "node:crypto";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import { pagesOf } from "../../wire/artifacts/mongo-bounds.ts";
import { type MongoDb, type MongoDocument, mongoCall } from "../../wire/artifacts/mongo-db.ts";

export interface MirrorPruningOptions {
  readonly db: MongoDb;
  readonly runs: Pick<Runs, "run">;
}

/** Tasks per step: some milliseconds. With a step every 15 s, half a million tasks are checked in two hours. */
const lookMax = 1_000;

export class MirrorPruning {
  readonly #options: MirrorPruningOptions;
  /** The last id that was checked. */
  #after = "";

  constructor(options: MirrorPruningOptions) {
    this.#options = options;
  }

  /** Checks the next tasks that this data file has mirrored: when a run is unknown, retention has removed it. */
  async look(mirrored_from: string): Promise<void> {
    const { db, runs } = this.#options;
    const filter = { mirrored_from, id: { $gt: this.#after } };
    const cursor = db.collection("tasks").find(filter, { projection: { _id: 0, id: 1 }, sort: { id: 1 }, limit: lookMax });
    const found: string[] = [];
    for await (const page of pagesOf("read tasks", cursor)) {
      for (const { id } of page) found.push(String(id));
      if (found.length >= lookMax) break;
    }
    for (const id of found) if ((await runs.run(id)) === undefined) await this.#remove(id);
    this.#after = found.length < lookMax ? "" : (found.at(-1) as string);
  }

  /** Removes the document of the task last: while it exists, the next search finds the rest again. */
  async #remove(id: string): Promise<void> {
    const remove = (collection: string, filter: MongoDocument) =>
      mongoCall("remove what belongs to a task", () => this.#options.db.collection(collection).deleteMany(filter));
    for (const collection of ["stream_progress", "metrics_raw", "artifacts"]) await remove(collection, { task_id: id });
    await remove("tasks", { id });
  }
}

const kind = "flowkit-mirror";

/**
 * A unique name of this data file. The name of the server can be configured. Another data file with the same server name has none of these
 * runs, and must not cause their removal.
 */
export async function fileOf(documents: Pick<DocumentStore, "document" | "keepDocument">): Promise<string> {
  const fresh = { kind, name: "file", version: 1, body: JSON.stringify(randomUUID()) };
  await documents.keepDocument(fresh, { unlessThere: true, own: true });
  return JSON.parse((await documents.document(kind, "file"))?.body ?? fresh.body) as string;
}
