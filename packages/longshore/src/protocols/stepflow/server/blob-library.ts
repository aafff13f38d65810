// Stepflow's blobs: JSON or bytes under the SHA-256 of their content. They may have a type and a file name, which are not part of the hash.
// Flows are blobs too: those that are stored as definitions can also be read here.

import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { jsonDepthMax } from "../../../core/json/json.ts";
import { JsonScan } from "../../../core/json/json-scan.ts";
import { parseLarge } from "../../../core/json/json-slices.ts";
import { Line } from "../../../core/line.ts";
import { shortBytes } from "../../../core/list-text.ts";
import { isName } from "../../../core/names.ts";
import { payloadRequestBytes } from "../../../core/payload-size.ts";
import { shown } from "../../../core/text.ts";
import type { BlobStore, StoredBlob } from "../../../engine/blob/blob.ts";
import { invalid } from "./refuse.ts";

export const blobTypes = ["data", "flow", "binary"] as const;
export type BlobType = (typeof blobTypes)[number];

export interface FoundBlob {
  readonly blobId: string;
  readonly type: BlobType;
  readonly bytes: number;
  readonly filename?: string;
  readonly content: Readable;
  /** True when it was stored as JSON: then it need not be parsed to find this out. */
  readonly isJson: boolean;
}

interface Note {
  readonly type: BlobType;
  readonly filename?: string;
}

/** The largest JSON blob. It is parsed as a whole to check it. Larger content must be stored as bytes. */
export const jsonBlobBytesMax = 16 * 1_024 * 1_024;
/**
 * The largest JSON that is returned as a value, in one message or as the output of a step. Larger blobs are returned as they were stored.
 */
export const jsonValueBytesMax = payloadRequestBytes;

/** The file name is shown to people, sent in a header and stored with the content. */
const filenameCharsMax = 255;
/** Maximum number of JSON values in a blob that is returned as a value: the limit of a request. */
const jsonBlobValuesMax = 131_072;

export class BlobLibrary {
  readonly #store: BlobStore;
  /** All callers together have one large content in memory at a time, in several forms. */
  readonly #reading = new Line(1);
  readonly #flowText: (flowId: string) => Promise<string | undefined>;

  /** `flowText` returns the flow that is stored under an id, as JSON text. */
  constructor(store: BlobStore, flowText: (flowId: string) => Promise<string | undefined>) {
    this.#store = store;
    this.#flowText = flowText;
  }

  /** `json` is compact JSON text. Its bytes are hashed. */
  async putJson(json: string, options: { type: BlobType; filename?: string }): Promise<{ blobId: string; filename?: string }> {
    return this.#put(Buffer.from(json), options);
  }

  async putBytes(content: AsyncIterable<Uint8Array> | Uint8Array, filename?: string): Promise<{ blobId: string; filename?: string }> {
    return this.#put(content, { type: "binary", ...(filename === undefined ? {} : { filename }) });
  }

  /** The caller must consume or destroy the content. */
  async find(hash: string): Promise<FoundBlob | undefined> {
    const stored = await this.#store.get(hash);
    if (stored !== undefined) {
      const note = this.#noteOf(stored);
      const isJson = stored.note !== null && note.type !== "binary";
      return { ...note, blobId: hash, bytes: stored.bytes, content: stored.content, isJson };
    }
    const flow = await this.#flowText(hash);
    if (flow === undefined) return undefined;
    const bytes = Buffer.from(flow);
    return { blobId: hash, type: "flow", bytes: bytes.length, content: Readable.from([bytes], { objectMode: false }), isJson: true };
  }

  /**
   * The content as JSON text; undefined when it is not JSON, was stored as bytes or is too large. Content that was not stored as JSON must
   * be within the limits of a request.
   */
  async jsonText(found: FoundBlob): Promise<string | undefined> {
    if (found.type === "binary" || found.bytes > jsonValueBytesMax) {
      found.content.destroy();
      return undefined;
    }
    return this.#alone(found, async () => {
      const scan = new JsonScan();
      const json = await textOf(scanned(found.content, scan));
      if (json === undefined || scan.values > jsonBlobValuesMax) return undefined;
      return found.isJson || (scan.deepest <= jsonDepthMax && (await isJson(json))) ? json : undefined;
    });
  }

  /** The content as it was stored. */
  bytes(found: FoundBlob): Promise<Uint8Array> {
    return this.#alone(found, () => buffer(found.content));
  }

  #alone<Result>({ bytes }: FoundBlob, read: () => Promise<Result>): Promise<Result> {
    return bytes <= shortBytes ? read() : this.#reading.use(read);
  }

  async #put(content: AsyncIterable<Uint8Array> | Uint8Array, note: Note): Promise<{ blobId: string; filename?: string }> {
    if (note.filename !== undefined) checkFilename(note.filename);
    const { hash } = await this.#store.put(content, { note: JSON.stringify(note) });
    return { blobId: hash, ...(note.filename === undefined ? {} : { filename: note.filename }) };
  }

  /** A blob that another API stored has no note. It is returned as JSON if it is JSON. */
  #noteOf({ note }: StoredBlob): Note {
    return note === null ? { type: "data" } : (JSON.parse(note) as Note);
  }
}

function checkFilename(name: string): void {
  if (name.length > filenameCharsMax) throw invalid("filename", `has ${name.length} characters, expected at most ${filenameCharsMax}`);
  if (!isName(name)) throw invalid("filename", `is ${shown(name)}, expected valid Unicode without the NUL character`);
}

/** Passes the pieces on and counts their values. */
async function* scanned(content: AsyncIterable<Uint8Array>, scan: JsonScan): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    scan.push(piece);
    yield piece;
    if (scan.values > jsonBlobValuesMax) return;
  }
}

/** Undefined when it is not UTF-8. A byte order mark is not JSON. */
async function textOf(content: AsyncIterable<Uint8Array>): Promise<string | undefined> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  try {
    for await (const piece of content) text += decoder.decode(piece, { stream: true });
    return text + decoder.decode();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_ENCODING_INVALID_ENCODED_DATA") return undefined;
    throw error;
  }
}

async function isJson(text: string): Promise<boolean> {
  const large = await parseLarge(text);
  if (large !== undefined) return large.fault === undefined;
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Not JSON.
    return false;
  }
}
