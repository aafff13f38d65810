// Files of runs: README.md, "Files". What is known about a file is a document; its content is a blob.

import type { Clock } from "../../../core/clock.ts";
import type { MakeId } from "../../../core/ids.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import type { BlobStore } from "../../../engine/blob/blob.ts";
import type { DocumentStore } from "../../../engine/run/documents.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { badRequest, conflict, json, noContent, notFound, Refused } from "./replies.ts";
import { objectOf, textIn } from "./request.ts";

export interface FilesDeps {
  readonly clock: Clock;
  readonly makeId: MakeId;
  readonly reader: Reader;
  readonly documents: DocumentStore;
  readonly blobs: BlobStore;
  /** The address that clients use, when it is not the one of their request; undefined when it is. */
  readonly address: string | undefined;
}

/** Maximum size of one file: that of a blob. */
export const fileBytesMax = 1_024 * 1_024 * 1_024;
/** Maximum length of a name, of a content type and of a task's id. */
const textCharsMax = 255;
/** Addresses are not signed and do not expire. Clients of the real server expect a time, and ask again after it. */
const addressMs = 60_000;
/** Documents of files have one version. */
const only = 1;
export const fileKind = "conductor-file";
/** Content types that a header can carry. */
const contentTypePattern = /^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:;[\x20-\x7e]*)?$/;

export interface StoredFile {
  readonly id: string;
  readonly workflowId: string;
  readonly taskId: string | null;
  readonly fileName: string;
  readonly contentType: string;
  /** The blob of its content; null before the upload. */
  readonly hash: string | null;
  readonly bytes: number;
  readonly isUploaded: boolean;
  /** The id of the request that confirmed the upload: in a cluster it may be performed again. */
  readonly confirmedBy?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export class Files {
  readonly #deps: FilesDeps;

  constructor(deps: FilesDeps) {
    this.#deps = deps;
  }

  create = async (request: HttpRequest): Promise<HttpReply> => {
    const body = objectOf(request, "the file");
    const workflowId = needed(body, "workflowId");
    const fileName = needed(body, "fileName");
    const contentType = needed(body, "contentType");
    if (!contentTypePattern.test(contentType))
      throw badRequest(`contentType is ${JSON.stringify(contentType)}, expected a type such as text/plain.`);
    if ((await this.#deps.reader.runHead(workflowId)) === undefined) throw notFound(`No such workflow found by id: ${workflowId}`);
    const { clock, makeId, documents } = this.#deps;
    const now = clock.now();
    const taskId = body.taskId === undefined || body.taskId === null ? null : needed(body, "taskId");
    const file: StoredFile = {
      ...{ id: makeId(now), workflowId, taskId, fileName, contentType },
      ...{ hash: null, bytes: 0, isUploaded: false, createdAt: now, updatedAt: now },
    };
    // A request that is performed again makes the same id, and gets the same response.
    await documents.keepDocument(documentOf(file), { unlessThere: true });
    const { createdAt } = (await this.#find(file.id)) ?? file;
    const made = {
      ...{ fileHandleId: handleOf(file), fileName, contentType, storageType: "CONDUCTOR", uploadStatus: statusOf(file) },
      ...{ uploadUrl: this.#addressOf(request, file), uploadUrlExpiresAt: createdAt + addressMs, createdAt },
    };
    return { ...json(made), status: 201 };
  };

  facts = async (request: HttpRequest): Promise<HttpReply> => {
    const file = await this.#known(request);
    const { fileName, contentType, workflowId, taskId, createdAt, updatedAt, isUploaded, bytes } = file;
    return json({
      ...{ fileHandleId: handleOf(file), fileName, contentType, fileSize: isUploaded ? bytes : 0, storageType: "CONDUCTOR" },
      ...{ uploadStatus: statusOf(file), workflowId, ...(taskId === null ? {} : { taskId }), createdAt, updatedAt },
    });
  };

  uploadAddress = async (request: HttpRequest): Promise<HttpReply> => {
    const file = await this.#known(request);
    return json({ fileHandleId: handleOf(file), uploadUrl: this.#addressOf(request, file), expiresAt: this.#expiresAt() });
  };

  downloadAddress = async (request: HttpRequest): Promise<HttpReply> => {
    const file = await this.#known(request);
    if (!file.isUploaded) throw badRequest(`File not yet uploaded: ${file.id}, status=${statusOf(file)}`);
    return json({ fileHandleId: handleOf(file), downloadUrl: this.#addressOf(request, file), expiresAt: this.#expiresAt() });
  };

  /** Content that arrives again before the upload is confirmed replaces the earlier one. */
  upload = async (request: HttpRequest): Promise<HttpReply> => {
    refuseUploaded(await this.#known(request));
    const { hash, bytes } = await this.#deps.blobs.put(request.stream);
    const file = await this.#known(request);
    refuseUploaded(file);
    if (file.hash !== hash) await this.#keep({ ...file, hash, bytes, updatedAt: this.#deps.clock.now() });
    return noContent;
  };

  confirm = async (request: HttpRequest): Promise<HttpReply> => {
    const file = await this.#known(request);
    const isRepeated = file.isUploaded && request.id !== undefined && file.confirmedBy === request.id;
    if (file.isUploaded && !isRepeated) throw conflict(`File already uploaded: ${file.id}`);
    if (file.hash === null) throw notFound(`File not found on storage backend: ${file.id}`);
    const confirmed = request.id === undefined ? {} : { confirmedBy: request.id };
    const done = { ...file, isUploaded: true, updatedAt: this.#deps.clock.now(), ...confirmed };
    if (!isRepeated) await this.#keep(done);
    return json({ fileHandleId: handleOf(done), uploadStatus: statusOf(done) });
  };

  content = async (request: HttpRequest): Promise<HttpReply> => {
    const file = await this.#known(request);
    if (!file.isUploaded) throw badRequest(`File has not been uploaded: ${file.id}`);
    const found = file.hash === null ? undefined : await this.#deps.blobs.get(file.hash);
    if (found === undefined) throw notFound(`File not found on storage backend: ${file.id}`);
    const headers = { "content-type": file.contentType, "content-length": String(found.bytes), ...asDownload };
    return { status: 200, headers, body: found.content };
  };

  async #known({ params }: HttpRequest): Promise<StoredFile> {
    const { workflow, file: id } = params as { workflow: string; file: string };
    const file = await this.#find(id);
    if (file === undefined) throw notFound(`File not found: ${id}`);
    if (file.workflowId !== workflow) throw new Refused(403, `Workflow cannot access file: ${id}`);
    return file;
  }

  async #find(id: string): Promise<StoredFile | undefined> {
    const document = await this.#deps.documents.document(fileKind, id, only);
    return document === undefined ? undefined : (JSON.parse(document.body) as StoredFile);
  }

  async #keep(file: StoredFile): Promise<void> {
    await this.#deps.documents.keepDocument(documentOf(file));
  }

  #expiresAt(): number {
    return this.#deps.clock.now() + addressMs;
  }

  #addressOf({ headers }: HttpRequest, { workflowId, id }: StoredFile): string {
    const base = this.#deps.address ?? `${headers["x-forwarded-proto"] === "https" ? "https" : "http"}://${headers.host ?? "localhost"}`;
    return `${base}/api/files/content/${encodeURIComponent(workflowId)}/${id}`;
  }
}

/** A browser must never show content of others as a page of this server. Every response already forbids it to guess another type. */
const asDownload = {
  "content-disposition": "attachment",
  "content-security-policy": "sandbox; default-src 'none'",
} as const;

function needed(body: JsonObject, field: string): string {
  const text = textIn(body, field) ?? "";
  if (text.trim() === "") throw badRequest(`${field} is missing, expected a text.`);
  if (text.length > textCharsMax && field !== "workflowId")
    throw badRequest(`${field} has ${text.length} characters, expected at most ${textCharsMax}.`);
  return text;
}

function documentOf(file: StoredFile) {
  return { kind: fileKind, name: file.id, version: only, body: JSON.stringify(file) };
}

function refuseUploaded({ id, isUploaded }: StoredFile): void {
  if (isUploaded) throw conflict(`File is not accepting content uploads: ${id}`);
}

function handleOf({ id }: StoredFile): string {
  return `conductor://file/${id}`;
}

function statusOf({ isUploaded }: StoredFile): "UPLOADED" | "UPLOADING" {
  return isUploaded ? "UPLOADED" : "UPLOADING";
}
