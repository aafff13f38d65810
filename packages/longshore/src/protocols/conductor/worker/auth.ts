// Tokens of servers with access control. Key and secret are exchanged for a token, which is sent with every request. The token is renewed
// before it expires, or when the server refuses it. A server without this endpoint (404) needs no token.

import type { Clock } from "../../../core/clock.ts";
import { LongshoreError, toError } from "../../../core/errors.ts";
import { isObject } from "../../../core/json/json.ts";
import type { Reply } from "../../../net/http/send.ts";
import { isAuthStatus } from "../wire/codes.ts";

export interface TokenOptions {
  readonly keys: { readonly id: string; readonly secret: string } | undefined;
  readonly refreshMs: number;
  readonly clock: Clock;
  /** Sends `POST /api/token` with this body. */
  readonly exchange: (body: string) => Promise<Pick<Reply, "status" | "text">>;
}

/** Maximum pause between failed exchanges: 2, 4, 8 ... seconds. A wrong secret must not cause a storm of requests. */
const failurePauseMsMax = 60_000;

export class Tokens {
  readonly #options: TokenOptions;
  #token: string | undefined;
  #obtainedMs = 0;
  #open: boolean;
  #failures = 0;
  #failed: { readonly error: Error; readonly untilMs: number } | undefined;
  #exchanging: Promise<void> | undefined;

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#open = options.keys === undefined;
  }

  /** The token to send; undefined when none is needed. Waits only when one has to be fetched first. */
  current(): string | undefined | Promise<string | undefined> {
    if (this.#open) return undefined;
    const { clock, refreshMs } = this.#options;
    if (this.#token !== undefined && clock.now() - this.#obtainedMs < refreshMs) return this.#token;
    return this.#obtain();
  }

  /** The server refuses `token`. Returns another one, or undefined when none is available now. */
  async renew(token: string): Promise<string | undefined> {
    if (this.#token === token) this.#token = undefined;
    const next = await this.#obtain();
    return next === token ? undefined : next;
  }

  async #obtain(): Promise<string | undefined> {
    try {
      // Requests in the meantime wait for the same exchange.
      this.#exchanging ??= this.#exchange().finally(() => {
        this.#exchanging = undefined;
      });
      await this.#exchanging;
    } catch (error) {
      // An older token may still be valid; otherwise the server refuses it.
      if (this.#token === undefined) throw error;
    }
    return this.#token;
  }

  async #exchange(): Promise<void> {
    const { clock, keys, exchange } = this.#options;
    if (keys === undefined) return;
    if (this.#failed !== undefined && clock.now() < this.#failed.untilMs) throw this.#failed.error;
    try {
      const reply = await exchange(JSON.stringify({ keyId: keys.id, keySecret: keys.secret }));
      if (reply.status === 404) {
        this.#open = true;
        this.#token = undefined;
      } else this.#token = tokenOf(reply);
      this.#obtainedMs = clock.now();
      this.#failures = 0;
      this.#failed = undefined;
    } catch (thrown) {
      const error = toError(thrown);
      const pauseMs = Math.min(1_000 * 2 ** ++this.#failures, failurePauseMsMax);
      this.#failed = { error, untilMs: clock.now() + pauseMs };
      throw error;
    }
  }
}

function tokenOf(reply: Pick<Reply, "status" | "text">): string {
  if (isAuthStatus(reply.status)) {
    const hint = "check keyId and keySecret, or CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET";
    throw new LongshoreError("LONGSHORE_UNAUTHORIZED", `The server refuses the access key (status ${reply.status}); ${hint}.`);
  }
  const token = reply.status === 200 ? parse(reply.text) : undefined;
  if (token !== undefined) return token;
  // The body is not quoted: it may hold a token.
  const message = `The server answered the request for a token with status ${reply.status}, expected 200 and {"token": "..."}.`;
  throw new LongshoreError("LONGSHORE_UNREACHABLE", message);
}

function parse(body: string): string | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) && typeof value.token === "string" && value.token !== "" ? value.token : undefined;
  } catch {
    // The caller adds what was expected.
    return undefined;
  }
}
