// Blobs as Stepflow has them: JSON or bytes under the SHA-256 of their content, with a type and perhaps a file's name beside it, which are
// no part of the hash. Flows are blobs too: those that are kept as definitions can be read here as well.

import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { JsonScan } from "../../../core/json/json-scan.ts";
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
  /** True when it was put as JSON, and so need not be read to know that it is. */
  readonly isJson: boolean;
}

interface Note {
  readonly type: BlobType;
  readonly filename?: string;
}

/** JSON that is stored: it is read whole to know that it can be. Larger content is for the binary way. */
export const jsonBlobBytesMax = 16 * 1_024 * 1_024;
/** JSON that a reader gets as a value, in one message or as the output of a step. What is larger is read as it was stored. */
export const jsonValueBytesMax = payloadRequestBytes;

/** A file's name is shown to people, sent in a header and stored with the content. */
const filenameCharsMax = 255;
/** JSON values of a blob that a reader requests as values: as many as a request may bring. */
const jsonBlobValuesMax = 131_072;

export class BlobLibrary {
  readonly #store: BlobStore;
  readonly #flowText: (flowId: string) => Promise<string | undefined>;

  /** `flowText` answers the flow that is kept under an id, as JSON text. */
  constructor(store: BlobStore, flowText: (flowId: string) => Promise<string | undefined>) {
    this.#store = store;
    this.#flowText = flowText;
  }

  /** `json` is compact JSON text: its bytes are what is hashed. */
  async putJson(json: string, options: { type: BlobType; filename?: string }): Promise<{ blobId: string; filename?: string }> {
    return this.#put(Buffer.from(json), options);
  }

  async putBytes(content: AsyncIterable<Uint8Array> | Uint8Array, filename?: string): Promise<{ blobId: string; filename?: string }> {
    return this.#put(content, { type: "binary", ...(filename === undefined ? {} : { filename }) });
  }

  /** The reader owns the content. */
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

  /** What is kept under the hash, as JSON text that is soon read; undefined when it is no JSON, was put as bytes or holds too much. */
  async jsonText(found: FoundBlob): Promise<string | undefined> {
    if (found.type === "binary" || found.bytes > jsonValueBytesMax) {
      found.content.destroy();
      return undefined;
    }
    const scan = new JsonScan();
    const json = await text(scanned(found.content, scan));
    if (scan.values > jsonBlobValuesMax) return undefined;
    return found.isJson || isJson(json) ? json : undefined;
  }

  async #put(content: AsyncIterable<Uint8Array> | Uint8Array, note: Note): Promise<{ blobId: string; filename?: string }> {
    if (note.filename !== undefined) checkFilename(note.filename);
    const { hash } = await this.#store.put(content, { note: JSON.stringify(note) });
    return { blobId: hash, ...(note.filename === undefined ? {} : { filename: note.filename }) };
  }

  /** What was stored by another way has no note of ours: it counts as JSON where it is requested as JSON. */
  #noteOf({ note }: StoredBlob): Note {
    return note === null ? { type: "data" } : (JSON.parse(note) as Note);
  }
}

function checkFilename(name: string): void {
  if (name.length > filenameCharsMax) throw invalid("filename", `has ${name.length} characters, expected at most ${filenameCharsMax}`);
  if (!isName(name)) throw invalid("filename", `is ${shown(name)}, expected valid Unicode without the NUL character`);
}

/** The same pieces, counted as they pass. */
async function* scanned(content: AsyncIterable<Uint8Array>, scan: JsonScan): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    scan.push(piece);
    yield piece;
    if (scan.values > jsonBlobValuesMax) return;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // It is no JSON, and only that was checked.
    return false;
  }
}
