// Blobs over gRPC: bytes for `ctx.blobs`, JSON for references and for `stepflowTask()`.

import type { Blobs } from "../../../core/context.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { Json } from "../../../core/json/json.ts";
import { bareBlobId } from "../wire/blob-id.ts";
import type { GetBlobResponse } from "../wire/messages.ts";
import { BlobService } from "../wire/services.ts";
import { failureOfCall } from "./grpc-failure.ts";
import type { Channel } from "./orchestrators.ts";

/** A blob may be as large as the largest message, so a call may take long. */
const timeoutMs = 60_000;

/** The blobs at one address. */
export class TaskBlobs implements Blobs {
  readonly #channel: Channel;
  readonly #address: string;

  constructor(channel: Channel, address: string) {
    this.#channel = channel;
    this.#address = address;
  }

  /** Stores a text as JSON, because every worker can read JSON. */
  put(bytes: Uint8Array | string): Promise<string> {
    return typeof bytes === "string" ? this.putJson(bytes, "data") : this.#put({ rawData: bytes, blobType: "binary" });
  }

  /** Returns the stored bytes. A stored text is returned as UTF-8, and any other JSON value as the UTF-8 of its JSON text. */
  async get(id: string): Promise<Uint8Array> {
    const { rawData, jsonData = null } = await this.#get(id);
    return rawData ?? Buffer.from(typeof jsonData === "string" ? jsonData : JSON.stringify(jsonData));
  }

  putJson(jsonData: Json, blobType: "data" | "flow"): Promise<string> {
    return this.#put({ jsonData, blobType });
  }

  /** Undefined when the blob is bytes. */
  async findJson(id: string): Promise<Json | undefined> {
    const { rawData, jsonData } = await this.#get(id);
    return rawData === undefined ? (jsonData ?? null) : undefined;
  }

  async getJson(id: string): Promise<Json> {
    const json = await this.findJson(id);
    if (json !== undefined) return json;
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `Blob ${id} is bytes, expected JSON; ctx.blobs.get() reads bytes.`, {
      detail: { field: "id" },
    });
  }

  async #put(request: { readonly rawData?: Uint8Array; readonly jsonData?: Json; readonly blobType: string }): Promise<string> {
    try {
      return (await this.#channel.unary(BlobService.PutBlob, request, { timeoutMs })).blobId;
    } catch (error) {
      throw failureOfCall(`PutBlob at ${this.#address}`, error);
    }
  }

  async #get(id: string): Promise<GetBlobResponse> {
    try {
      return await this.#channel.unary(BlobService.GetBlob, { blobId: bareBlobId(id) }, { timeoutMs });
    } catch (error) {
      throw failureOfCall(`GetBlob at ${this.#address}`, error);
    }
  }
}
