// The handshake with a worker, and its result: its dialect, whether it understands references to blobs, and its components.

import { LongshoreError } from "../../../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../../../core/json/json.ts";
import type { RpcDialect } from "../../../wire/codes.ts";
import { protocolVersion } from "../../../wire/http/params.ts";
import { componentsMax, pathOf, type RegisteredComponent } from "../../config/registered-components.ts";
import type { WorkerClient } from "./client.ts";

export interface Session {
  readonly client: WorkerClient;
  readonly dialect: RpcDialect;
  readonly blobRefs: boolean;
}

export interface SessionOptions {
  /** The blob API for the worker; null when this server offers none. */
  readonly blobs: { readonly url: string; readonly threshold: number } | null;
}

/** Sends the parameters in both notations: workers of either dialect read theirs and ignore the other. */
export async function openSession(client: WorkerClient, { blobs }: SessionOptions, signal: AbortSignal): Promise<Session> {
  const params: JsonObject = {
    runtime_protocol_version: protocolVersion,
    runtimeProtocolVersion: protocolVersion,
    capabilities: blobs === null ? {} : { blobApiUrl: blobs.url, blobThreshold: blobs.threshold },
  };
  const answer = await client.ask("initialize", params, signal);
  if ("error" in answer) throw refused(client, `it refuses the handshake: ${answer.error.message} (${answer.error.code})`);
  const said: { readonly [key: string]: unknown } = isObject(answer.result) ? answer.result : {};
  const version = said.serverProtocolVersion ?? said.server_protocol_version;
  if (version !== protocolVersion) {
    throw refused(client, `it speaks version ${JSON.stringify(version) ?? "none"} of the protocol, expected ${protocolVersion}`);
  }
  const status = await client.notify("initialized", signal);
  // The reference insists on 202; any success means the same.
  if (status < 200 || status > 299) throw refused(client, `it answers 'initialized' with status ${status}, expected 202`);
  return { client, dialect: said.serverProtocolVersion === undefined ? "A" : "B", blobRefs: said.supportsBlobRefs === true };
}

/** The components that the worker lists. Some workers omit components with placeholders in their paths. */
export async function listComponents({ client }: Session, signal: AbortSignal): Promise<RegisteredComponent[]> {
  const answer = await client.ask("components/list", {}, signal);
  if ("error" in answer) throw refused(client, `it does not list its components: ${answer.error.message} (${answer.error.code})`);
  const listed = isObject(answer.result) ? (answer.result as JsonObject).components : undefined;
  if (!Array.isArray(listed)) throw refused(client, "its list of components is not a list, expected {components: [...]}");
  if (listed.length > componentsMax) throw refused(client, `it lists ${listed.length} components, expected at most ${componentsMax}`);
  return listed.flatMap((entry) => componentOf(entry) ?? []);
}

/** Null for an entry without a component name. */
function componentOf(entry: Json): RegisteredComponent | null {
  if (!isObject(entry) || typeof entry.component !== "string" || entry.component === "") return null;
  const { component, description, input_schema, output_schema } = entry as JsonObject;
  return {
    id: component as string,
    path: pathOf(component as string, undefined),
    ...(typeof description === "string" ? { description } : {}),
    ...(isObject(input_schema) ? { inputSchema: input_schema as Json } : {}),
    ...(isObject(output_schema) ? { outputSchema: output_schema as Json } : {}),
  };
}

function refused(client: WorkerClient, why: string): LongshoreError {
  return new LongshoreError("LONGSHORE_UNREACHABLE", `The worker at ${client.url} cannot be used: ${why}.`);
}
