// MongoDB as this folder uses it: the few calls, opening a connection, the indexes, and the meaning of errors. The client is an optional
// package, so the interfaces here replace its types.

import { LongshoreError, toError } from "../../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";

export type MongoDocument = { [field: string]: unknown };

export interface MongoCursor {
  hasNext(): Promise<boolean>;
  /** The documents of the server's last reply. */
  readBufferedDocuments(): MongoDocument[];
  close(): Promise<void>;
}

/** One update of a bulk write. */
export interface MongoUpdate {
  updateOne: { filter: MongoDocument; update: MongoDocument; upsert?: boolean };
}

export interface MongoCollection {
  findOne(filter: MongoDocument, options?: MongoDocument): Promise<MongoDocument | null>;
  find(filter: MongoDocument, options?: MongoDocument): MongoCursor;
  countDocuments(filter: MongoDocument): Promise<number>;
  insertMany(documents: MongoDocument[], options?: MongoDocument): Promise<unknown>;
  updateOne(filter: MongoDocument, update: MongoDocument, options?: MongoDocument): Promise<{ matchedCount: number }>;
  bulkWrite(operations: MongoUpdate[], options?: MongoDocument): Promise<{ matchedCount: number }>;
  deleteMany(filter: MongoDocument): Promise<{ deletedCount: number }>;
  createIndex(keys: { [field: string]: 1 }, options: MongoDocument): Promise<string>;
}

/** A `Db` of the package `mongodb`. */
export interface MongoDb {
  readonly databaseName: string;
  collection(name: string): MongoCollection;
}

export interface MongoOptions {
  /** An address such as `mongodb://127.0.0.1:27017/flowkit`. */
  readonly url: string;
  /** The database, when the address names none. Default: `flowkit`. */
  readonly database?: string;
}

export interface MongoConnection {
  readonly db: MongoDb;
  close(): Promise<void>;
}

/** How long a call waits for an available server before it rejects. */
const selectionMs = 10_000;
/** When a connection with an open call is closed because nothing arrives. The caller has given up before (mongo-bounds.ts). */
const silenceMs = 600_000;
const databaseDefault = "flowkit";
const install = "npm install mongodb";

type MongoPackage = Pick<typeof import("mongodb"), "MongoClient">;

/** Rejects with LONGSHORE_BAD_CONFIG when the address is invalid or the client is not installed. Tests replace `load`. */
export async function connectMongo(
  { url, database }: MongoOptions,
  load: () => Promise<MongoPackage> = () => import("mongodb"),
): Promise<MongoConnection> {
  const { MongoClient } = await loadMongo(load);
  let client: InstanceType<typeof MongoClient>;
  try {
    // An acknowledged write must survive the loss of one server.
    const waits = { serverSelectionTimeoutMS: selectionMs, socketTimeoutMS: silenceMs };
    client = new MongoClient(url, { ...waits, w: "majority", journal: true });
  } catch (error) {
    // The client's message may contain the address and its password.
    const message = "The address of MongoDB cannot be read, expected one such as mongodb://127.0.0.1:27017/flowkit.";
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, {
      cause: error,
      detail: { field: "mongo.url", expected: "a MongoDB address" },
    });
  }
  const named = database ?? (new URL(url.replace(/^mongodb(\+srv)?:\/\/[^/]*/, "mongodb://host")).pathname.slice(1) || databaseDefault);
  return { db: client.db(named), close: () => client.close() };
}

async function loadMongo(load: () => Promise<MongoPackage>): Promise<MongoPackage> {
  try {
    return await load();
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `MongoDB needs the package mongodb: ${install}`, { cause: error });
  }
}

export type MongoIndex = readonly [collection: string, keys: readonly string[], options: MongoDocument];

/** `task_id` and `node_id` come first in each index, so that the records of a task are stored together. */
const workerIndexes: readonly MongoIndex[] = [
  ["tasks", ["id"], { name: "ix_task_id" }],
  ["artifacts", ["task_id", "node_id"], { name: "ix_artifacts_task_node" }],
  ["artifacts", ["task_id", "node_id", "batch_uid"], { name: "uniq_artifact_batch", unique: true, sparse: true }],
  // Our addition: a stream continues at its position without sorting again.
  ["artifacts", ["task_id", "node_id", "created_at", "sequence"], { name: "ix_artifacts_stream" }],
  ["stream_progress", ["task_id", "consumer_node", "from_node", "batch_uid"], { name: "uniq_stream_claim_batch", unique: true }],
  ["worker_state", ["updated_at"], { name: "ttl_worker_state_updated_at", expireAfterSeconds: 604_800 }],
];

/** IndexOptionsConflict and IndexKeySpecsConflict: the index exists under another name or with other options. */
const indexThere: ReadonlySet<unknown> = new Set([85, 86]);

/** FlowKit's coordinator and workers give the same index different names. Either index is sufficient. */
export async function ensureIndexes(db: MongoDb, wanted: readonly MongoIndex[] = workerIndexes): Promise<void> {
  for (const [collection, keys, options] of wanted) {
    try {
      await db.collection(collection).createIndex(Object.fromEntries(keys.map((key) => [key, 1])), options);
    } catch (error) {
      if (!indexThere.has((error as { code?: unknown }).code)) throw error;
    }
  }
}

/** The client's error classes for a call that reached no server. Compared by name, because the user may supply the package. */
const unreachable =
  /^Mongo(Network|NetworkTimeout|ServerSelection|PoolCleared|PoolClosed|WaitQueueTimeout|NotConnected|TopologyClosed|ClientClosed)Error$/;
/** NotWritablePrimary and related errors of a failover, MaxTimeMSExpired, and writes that too few servers have confirmed. */
const passing: ReadonlySet<unknown> = new Set([50, 64, 91, 189, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436]);
const tooLarge: ReadonlySet<unknown> = new Set([10_334, 17_280]);
const duplicateKey = 11_000;
/** CursorNotFound: the cursor was idle for so long that the server has closed it. */
const cursorGone = 43;

/** Runs one call. Converts the client's errors to our codes, if there is a code for them. */
export async function mongoCall<T>(what: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    const error = toError(thrown);
    const { code } = error as { code?: unknown };
    // The error of a bulk write contains the error of the connection.
    const { errorResponse: inner } = error as { errorResponse?: unknown };
    const isLost = unreachable.test(error.name) || (inner instanceof Error && unreachable.test(inner.name));
    if (isLost || passing.has(code)) {
      throw new LongshoreError("LONGSHORE_UNREACHABLE", `MongoDB did not ${what}: ${error.message}`, { cause: error });
    }
    if (tooLarge.has(code) || error instanceof RangeError) {
      const message = `MongoDB did not ${what}: a document is larger than its limit of 16 MiB.`;
      throw new LongshoreError("LONGSHORE_LIMIT", message, { cause: error, detail: { expected: "documents of at most 16 MiB" } });
    }
    throw error;
  }
}

export function isCursorGone(error: unknown): boolean {
  return (error as { code?: unknown }).code === cursorGone;
}

/**
 * For an unordered insert: the positions of the documents that already existed. Throws the error again when the whole insert was refused,
 * or may have been.
 */
export function duplicatesIn(error: unknown): Set<number> {
  const { writeErrors } = error as { writeErrors?: unknown };
  const list = (Array.isArray(writeErrors) ? writeErrors : [writeErrors]) as { code?: unknown; index?: unknown }[];
  if (list.length === 0 || !list.every((one) => one?.code === duplicateKey && typeof one.index === "number")) throw error;
  return new Set(list.map(({ index }) => index as number));
}

/** Inserts new documents; upserts would cost twice as much. Returns those that already existed. */
export async function insertNew(db: MongoDb, collection: string, documents: MongoDocument[]): Promise<MongoDocument[]> {
  if (documents.length === 0) return [];
  try {
    await mongoCall("keep documents", () => db.collection(collection).insertMany(documents, { ordered: false }));
    return [];
  } catch (error) {
    const known = duplicatesIn(error);
    return documents.filter((_, at) => known.has(at));
  }
}

export function isDuplicate(error: unknown): boolean {
  return (error as { code?: unknown }).code === duplicateKey;
}

/**
 * Converts BSON values to JSON: dates to texts, numbers of any width to numbers, other types to their text. `wide` reads 64-bit integers.
 */
export function plain(value: unknown, wide: (digits: string) => unknown = Number): Json {
  if (value === null || value === undefined) return null;
  if (typeof value !== "object") return typeof value === "bigint" ? Number(value) : (value as Json);
  if (Array.isArray(value)) return value.map((item) => plain(item, wide));
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  // BSON classes have `_bsontype` on their prototype. In a document it is an ordinary field.
  const type = Object.hasOwn(value, "_bsontype") ? undefined : (value as { _bsontype?: unknown })._bsontype;
  if (type === "Long") return wide(String(value)) as Json;
  if (type === "Int32" || type === "Double" || type === "Decimal128") return Number(String(value));
  if (typeof type === "string") return String(value);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member, wide)]));
}

/** The object in a field of a document; empty for any other value. */
export function plainObject(value: unknown, wide?: (digits: string) => unknown): JsonObject {
  return isObject(value) ? (plain(value, wide) as JsonObject) : {};
}
