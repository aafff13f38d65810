// The first messages of the runtime: `initialize`, then `initialized`. Until both have come nothing else is accepted, unless the worker is
// configured as one of several behind a balancer. A runtime that restarts sends them again; once open, the gate stays open, since another
// runtime may be at work meanwhile.
//
//   closed --initialize--> named --initialized--> open

import type { JsonObject } from "../../../../core/json/json.ts";
import type { RpcDialect } from "../../wire/codes.ts";
import { initializeParams, protocolVersion } from "../../wire/http/params.ts";
import { RpcError } from "../../wire/rpc-error.ts";
import type { Settings } from "./options.ts";

export class Handshake {
  readonly #settings: Settings;
  #state: "closed" | "named" | "open";
  #dialect: RpcDialect;
  #blobApiUrl: string | undefined;
  #blobThreshold = 0;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#state = settings.handshake ? "closed" : "open";
    // A process that no runtime has called yet, but that has the later dialect's address for blobs, is meant for that dialect.
    this.#dialect = settings.blobApiUrl === undefined ? "A" : "B";
  }

  get open(): boolean {
    return this.#state === "open";
  }

  get dialect(): RpcDialect {
    return this.#dialect;
  }

  /** The worker's own setting takes precedence over the runtime's: it may be a nearer way. */
  get blobApiUrl(): string | undefined {
    return this.#settings.blobApiUrl ?? this.#blobApiUrl;
  }

  get blobThresholdBytes(): number {
    return this.#settings.blobThresholdBytes ?? this.#blobThreshold;
  }

  /** The answer names our version, whatever the runtime's is: it decides whether that suits it. Both styles of keys, so that either reads it. */
  initialize(params: JsonObject): JsonObject {
    const { camelCase, blobApiUrl, blobThreshold } = initializeParams(params);
    this.#dialect = camelCase ? "B" : "A";
    this.#blobApiUrl = blobApiUrl;
    // Without the API the references could not be resolved.
    this.#blobThreshold = blobApiUrl === undefined ? 0 : (blobThreshold ?? 0);
    if (this.#state === "closed") this.#state = "named";
    return { server_protocol_version: protocolVersion, serverProtocolVersion: protocolVersion, supportsBlobRefs: true };
  }

  /** True when it opened the gate. */
  initialized(): boolean {
    if (this.#state !== "named") return false;
    this.#state = "open";
    return true;
  }

  /** Throws -32002 while the gate is closed. */
  require(method: string): void {
    if (this.open) return;
    const awaited = this.#state === "closed" ? "initialize" : "initialized";
    throw new RpcError("notInitialized", `${method} came before ${awaited}: the worker accepts nothing else until the handshake is done.`, {
      expected: awaited,
    });
  }
}
