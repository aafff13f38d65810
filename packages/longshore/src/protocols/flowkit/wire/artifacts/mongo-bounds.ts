// Wraps MongoDB so that its calls have a timeout. The MongoDB client waits for a reply without a limit. It also reads any number of empty
// replies. Here a call rejects when no reply arrives in time, or when its signal aborts. The database may still execute the call, so it
// must be safe to repeat.

import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { untilAborted } from "../../../../core/until-aborted.ts";
import { type MongoCollection, type MongoCursor, type MongoDb, type MongoDocument, mongoCall } from "./mongo-db.ts";

export interface MongoBounds {
  readonly clock: Clock;
  /** Aborts open calls with its reason. */
  readonly signal: AbortSignal;
}

/** The timeout of a reply. Each call is about one task or one page, so a call that takes longer will get no reply at all. */
const answerMs = 30_000;
/** Timeout for creating an index, which may have to read all documents. */
const indexMs = 600_000;

export function boundedDb(db: MongoDb, bounds: MongoBounds): MongoDb {
  return { databaseName: db.databaseName, collection: (name) => boundedCollection(db.collection(name), bounds) };
}

function boundedCollection(collection: MongoCollection, bounds: MongoBounds): MongoCollection {
  const within = <T>(call: Promise<T>, ms = answerMs) => answered(call, ms, bounds);
  return {
    findOne: (filter, options) => within(collection.findOne(filter, options)),
    find: (filter, options) => boundedCursor(collection.find(filter, options), bounds),
    countDocuments: (filter) => within(collection.countDocuments(filter)),
    insertMany: (documents, options) => within(collection.insertMany(documents, options)),
    updateOne: (filter, update, options) => within(collection.updateOne(filter, update, options)),
    bulkWrite: (operations, options) => within(collection.bulkWrite(operations, options)),
    deleteMany: (filter) => within(collection.deleteMany(filter)),
    createIndex: (keys, options) => within(collection.createIndex(keys, options), indexMs),
  };
}

function boundedCursor(cursor: MongoCursor, bounds: MongoBounds): MongoCursor {
  return {
    hasNext: () => answered(cursor.hasNext(), answerMs, bounds),
    readBufferedDocuments: () => cursor.readBufferedDocuments(),
    close: () => answered(cursor.close(), answerMs, bounds),
  };
}

async function answered<T>(call: Promise<T>, ms: number, { clock, signal }: MongoBounds): Promise<T> {
  const late = new AbortController();
  const message = `No answer came within ${ms / 1_000} s.`;
  const disarm = clock.at(clock.now() + ms, () => late.abort(new LongshoreError("LONGSHORE_UNREACHABLE", message)));
  try {
    return await untilAborted(untilAborted(call, late.signal), signal);
  } finally {
    disarm();
  }
}

/** The documents of a search, page by page. Always closes the cursor; otherwise the search would continue in the client. */
export async function* pagesOf(what: string, cursor: MongoCursor): AsyncGenerator<MongoDocument[], void> {
  try {
    while (await mongoCall(what, () => cursor.hasNext())) yield cursor.readBufferedDocuments();
  } finally {
    // A lost connection has closed the cursor.
    await cursor.close().catch(() => undefined);
  }
}
