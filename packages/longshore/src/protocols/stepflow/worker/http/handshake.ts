// The handshake: `initialize`, then `initialized`. Until both have arrived the worker refuses other messages, unless it is configured as
// one of several replicas behind a balancer. A runtime that restarts sends them again. Once open, the gate stays open, because another
// runtime may be working with it.
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
    // Before the first call of a runtime, the dialect is B when a blob API address is configured.
    this.#dialect = settings.blobApiUrl === undefined ? "A" : "B";
  }

  get open(): boolean {
    return this.#state === "open";
  }

  get dialect(): RpcDialect {
    return this.#dialect;
  }

  /** The worker's own setting takes precedence over the runtime's, because its address may be closer. */
  get blobApiUrl(): string | undefined {
    return this.#settings.blobApiUrl ?? this.#blobApiUrl;
  }

  get blobThresholdBytes(): number {
    return this.#settings.blobThresholdBytes ?? this.#blobThreshold;
  }

  /**
   * The answer always names our version; the runtime decides whether that is acceptable. It has both key styles, so that either dialect can
   * read it.
   */
  initialize(params: JsonObject): JsonObject {
    const { camelCase, blobApiUrl, blobThreshold } = initializeParams(params);
    this.#dialect = camelCase ? "B" : "A";
    this.#blobApiUrl = blobApiUrl;
    // Without the blob API, references could not be resolved.
    this.#blobThreshold = blobApiUrl === undefined ? 0 : (blobThreshold ?? 0);
    if (this.#state === "closed") this.#state = "named";
    return { server_protocol_version: protocolVersion, serverProtocolVersion: protocolVersion, supportsBlobRefs: true };
  }

  /** Returns true when this message opened the gate. */
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
