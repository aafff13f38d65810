// References to blobs inside inputs and outputs: `{ "$blob": "<64 hex>", "blobType": "data", "size": 123 }` refers to the JSON that is
// stored under that id. In an input, references are replaced by their values, also inside fetched blobs. In an output, large top-level
// fields are stored as blobs and replaced by references, if a threshold is set.

import { LongshoreError, refusal } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { blobIdIn } from "./blob-id.ts";

/** Maximum nesting of blobs that refer to blobs, as in the reference. Deeper nesting is a mistake. */
const roundsMax = 8;
/** Maximum number of concurrent fetches, as in the reference. */
const fetchesMax = 16;
/** Maximum number of different blobs in one input. More would take minutes and gigabytes, and no flow needs so many. */
const blobsMax = 1_000;

/** A reference and its place. In a list, the key is the index. */
interface Found {
  readonly id: string;
  readonly holder: JsonObject;
  readonly key: string;
}

/**
 * Returns the value with every reference replaced. `fetch` returns undefined for a blob that is not JSON; that reference stays as it is,
 * for `ctx.blobs`. Throws a TerminalError for permanent failures: an unknown blob, too many blobs, references that are too deep.
 */
export async function resolveBlobs(value: Json, fetch: (id: string) => Promise<Json | undefined>): Promise<Json> {
  const root: JsonObject = { value };
  const known = new Map<string, Json | undefined>();
  let found = find(root, "value");
  for (let round = 0; found.length > 0; round++) {
    if (round >= roundsMax) throw badInput(`The input has blobs that refer to blobs, nested deeper than ${roundsMax} levels.`);
    const missing = [...new Set(found.map(({ id }) => id))].filter((id) => !known.has(id));
    if (known.size + missing.length > blobsMax) throw badInput(`The input refers to more than ${blobsMax} blobs.`);
    await inTurns(missing, async (id) => known.set(id, await fetchOne(id, fetch)));
    found = found.flatMap(({ id, holder, key }) => {
      const blob = known.get(id);
      if (blob === undefined) return [];
      // Each place gets its own copy, because a handler may change one of them.
      setOwn(holder, key, structuredClone(blob));
      return find(holder, key);
    });
  }
  return root.value as Json;
}

/** Returns the output with each top-level field that is larger than the threshold replaced by a reference. */
export async function replaceLarge(output: Json, thresholdBytes: number, put: (value: Json) => Promise<string>): Promise<Json> {
  if (!isObject(output)) return output;
  const replaced: JsonObject = { ...output };
  const large = Object.entries(output).flatMap(([key, value]) => {
    const size = Buffer.byteLength(JSON.stringify(value));
    return size > thresholdBytes ? [{ key, value, size }] : [];
  });
  await inTurns(large, async ({ key, value, size }) => {
    replaced[key] = { $blob: await put(value), blobType: "data", size };
  });
  return large.length === 0 ? output : replaced;
}

async function fetchOne(id: string, fetch: (id: string) => Promise<Json | undefined>): Promise<Json | undefined> {
  try {
    return await fetch(id);
  } catch (error) {
    if (error instanceof LongshoreError && error.code === "LONGSHORE_NOT_FOUND") {
      throw badInput(`The input refers to blob ${id}, which does not exist.`);
    }
    throw error;
  }
}

/** Every reference in this value. */
function find(holder: JsonObject, key: string, found: Found[] = []): Found[] {
  const value = holder[key] as Json;
  if (typeof value !== "object" || value === null) return found;
  const id = idOf(value);
  if (id !== undefined) found.push({ id, holder, key });
  else for (const inner of Object.keys(value)) find(value as JsonObject, inner, found);
  return found;
}

/** The blob id, when the value is a reference to JSON and has no other fields. */
function idOf(value: Json): string | undefined {
  if (!isObject(value) || typeof value.$blob !== "string" || value.blobType === "binary") return undefined;
  for (const key of Object.keys(value)) if (key !== "$blob" && key !== "blobType" && key !== "size") return undefined;
  return blobIdIn(value.$blob);
}

async function inTurns<Item>(items: readonly Item[], each: (item: Item) => Promise<unknown>): Promise<void> {
  const waiting = items.values();
  const work = async () => {
    for (const item of waiting) await each(item);
  };
  await Promise.all(Array.from({ length: Math.min(fetchesMax, items.length) }, work));
}

function badInput(message: string): Error {
  return refusal("LONGSHORE_BAD_INPUT", message, "input");
}
