// Blobs over REST: as JSON in an envelope, or as bytes. The content type of the request is the form of the sent blob; `Accept` is the form
// of the returned one.

import { Readable } from "node:stream";
import { inBodyTurns, parseLarge } from "../../../../core/json/json-slices.ts";
import { compactText, memberTexts } from "../../../../core/json/json-text.ts";
import { blobBytesMax } from "../../../../engine/blob/blob.ts";
import type { HttpReply, HttpRequest, Route } from "../../../../net/http/http.ts";
import { blobIdIn } from "../../wire/blob-id.ts";
import { type BlobLibrary, type BlobType, blobTypes, type FoundBlob, jsonBlobBytesMax } from "../blob-library.ts";
import { invalid, notFound } from "../refuse.ts";
import { json } from "./rest-json.ts";
import * as read from "./rest-request.ts";

const bytesType = "application/octet-stream";

export class BlobRoutes {
  readonly #blobs: BlobLibrary;
  readonly routes: readonly Route[];

  constructor(blobs: BlobLibrary) {
    this.#blobs = blobs;
    this.routes = [
      {
        method: "POST",
        path: "/api/v1/blobs",
        action: "blob.write",
        body: "stream",
        bodyMax: blobBytesMax,
        handle: (request) => this.#put(request),
      },
      {
        method: "GET",
        path: "/api/v1/blobs/:blob",
        action: "blob.read",
        stored: true,
        body: "none",
        openEnded: true,
        handle: (request) => this.#get(request),
      },
    ];
  }

  async #put(request: HttpRequest): Promise<HttpReply> {
    const type = request.headers["content-type"] ?? "";
    if (type.startsWith(bytesType)) return json(await this.#blobs.putBytes(request.stream, filenameIn(request)));
    if (!type.startsWith("application/json")) {
      throw read.bad(`The content type is ${JSON.stringify(type.slice(0, 100))}, expected application/json or ${bytesType}.`);
    }
    const body = await request.streamText(jsonBlobBytesMax);
    const parsed = read.objectIn({ text: body, parsed: await parseLarge(body) });
    const members = await inBodyTurns(body, memberTexts(body.trim() === "" ? "{}" : body));
    // Uses the text and not the parsed value, because the id is the hash of the original text.
    const data = members.get("data") ?? members.get("jsonData") ?? members.get("json_data");
    if (data === undefined) throw invalid("data", "is missing, expected any JSON");
    const filename = read.textOf(parsed, "filename");
    const options = { type: typeOf(read.textOf(parsed, "blobType")), ...(filename === undefined ? {} : { filename }) };
    return json(await this.#blobs.putJson(await inBodyTurns(data, compactText(data)), options));
  }

  async #get({ params, headers }: HttpRequest): Promise<HttpReply> {
    const given = params.blob as string;
    const hash = blobIdIn(given);
    if (hash === undefined) throw invalid("blob_id", `is ${JSON.stringify(given.slice(0, 100))}, expected 64 hexadecimal digits`);
    const found = await this.#blobs.find(hash);
    if (found === undefined) throw notFound("blob", hash);
    return headers.accept?.includes(bytesType) ? asBytes(found) : this.#asJson(found);
  }

  async #asJson(found: FoundBlob): Promise<HttpReply> {
    const { blobId, type, filename } = found;
    const bytes = type === "binary" && filename !== undefined ? { contentType: bytesType } : {};
    const rest = JSON.stringify({ blobType: type, blobId, ...(filename === undefined ? {} : { filename }), ...bytes });
    const headers = { "content-type": "application/json" };
    // Sends the stored text, because parsing would change large integers.
    if (found.isJson) return { status: 200, headers, body: Readable.from(enveloped(found.content, rest), { objectMode: false }) };
    if ((await this.#blobs.jsonText(found)) === undefined) return { status: 200, headers, body: `{"data":null,${rest.slice(1)}` };
    // The blob is read again piece by piece: it must not be in memory while a slow reader takes it.
    const again = await this.#blobs.find(blobId);
    if (again === undefined) throw notFound("blob", blobId);
    return { status: 200, headers, body: Readable.from(enveloped(again.content, rest), { objectMode: false }) };
  }
}

async function* enveloped(content: AsyncIterable<Uint8Array>, rest: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"data":');
  yield* content;
  yield Buffer.from(`,${rest.slice(1)}`);
}

function asBytes({ content, bytes, type, filename }: FoundBlob): HttpReply {
  const headers: Record<string, string> = { "content-type": bytesType, "content-length": String(bytes), "x-blob-type": type };
  if (filename !== undefined) headers["content-disposition"] = disposition(filename);
  return { status: 200, headers, body: content };
}

/** An ASCII name as it is; any other name in the form of RFC 6266, with an ASCII fallback. */
function disposition(filename: string): string {
  const plain = filename.replace(/[^ -~]|["\\]/g, "_");
  const extended = plain === filename ? "" : `; filename*=UTF-8''${encodeURIComponent(filename)}`;
  return `attachment; filename="${plain}"${extended}`;
}

function typeOf(said: string | undefined): BlobType {
  const type = said === undefined || said === "" ? "data" : said;
  const known = blobTypes.find((each) => each === type);
  if (known === undefined) throw invalid("blob_type", `is ${JSON.stringify(type.slice(0, 100))}, expected one of ${blobTypes.join(", ")}`);
  return known;
}

/** Node decodes headers as Latin-1; names outside ASCII arrive as UTF-8. */
function filenameIn(request: HttpRequest): string | undefined {
  const name = request.headers["x-blob-filename"];
  return typeof name === "string" && name !== "" ? Buffer.from(name, "latin1").toString("utf8") : undefined;
}
