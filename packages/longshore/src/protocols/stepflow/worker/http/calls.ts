// Calls from a component to the runtime. Each call is sent as an event on the open answer of its execution. The runtime answers with a
// request of its own, in any order; the id names the call. Ids are made here, so two executions never share one.

import { randomUUID } from "node:crypto";
import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import type { Json, JsonObject } from "../../../../core/json/json.ts";
import { meaningOf, type RpcDialect } from "../../wire/codes.ts";
import { type RpcId, type RpcMessage, requestText } from "../../wire/json-rpc.ts";
import type { Exchange } from "./exchange.ts";

export type CallAnswer = Extract<RpcMessage, { kind: "result" | "error" }>;

/** Maximum number of open calls of one execution. The runtime works on all of them at the same time. */
const openMax = 1_000;

/** All open calls of the process, by id: an answer arrives on another connection than its call. */
export class Calls {
  readonly #pending = new Map<RpcId, (answer: CallAnswer | Error) => void>();

  /** Passes an answer to the call that waits for it. Returns false when no call does. */
  settle(answer: CallAnswer): boolean {
    const settle = this.#pending.get(answer.id);
    settle?.(answer);
    return settle !== undefined;
  }

  /** The calls of one execution. They end with the execution, and with the connection that carries them. */
  of(exchange: Exchange, options: { readonly clock: Clock; readonly dialect: RpcDialect; readonly over: AbortSignal }): Channel {
    return new Channel(this.#pending, exchange, options);
  }
}

export class Channel {
  readonly #all: Map<RpcId, (answer: CallAnswer | Error) => void>;
  readonly #exchange: Exchange;
  readonly #clock: Clock;
  readonly #dialect: RpcDialect;
  readonly #open = new Set<(answer: Error) => void>();
  #ended: Error | undefined;

  constructor(
    all: Map<RpcId, (answer: CallAnswer | Error) => void>,
    exchange: Exchange,
    { clock, dialect, over }: { readonly clock: Clock; readonly dialect: RpcDialect; readonly over: AbortSignal },
  ) {
    this.#all = all;
    this.#exchange = exchange;
    this.#clock = clock;
    this.#dialect = dialect;
    exchange.onGone(() => this.#end(new LongshoreError("LONGSHORE_CANCELLED", "The runtime has disconnected, so it cannot be called.")));
    over.addEventListener("abort", () => this.#end(new LongshoreError("LONGSHORE_CLOSED", "The execution is over.")), { once: true });
  }

  /**
   * Calls the runtime and waits for its answer for at most `limitMs`; without a limit when that is undefined, as when a call waits for a
   * run. Rejects with a LongshoreError for a refusal.
   */
  async call(method: string, params: JsonObject, limitMs: number | undefined): Promise<Json> {
    if (this.#ended !== undefined) throw this.#ended;
    if (this.#open.size >= openMax) {
      throw new LongshoreError("LONGSHORE_LIMIT", `More than ${openMax} calls to the runtime are open at once: wait for some of them.`);
    }
    const id = randomUUID();
    let settle: (answer: CallAnswer | Error) => void = () => {};
    let disarm = () => {};
    try {
      const answer = await new Promise<CallAnswer | Error>((resolve) => {
        settle = resolve;
        this.#all.set(id, settle);
        this.#open.add(settle);
        if (limitMs !== undefined) disarm = this.#clock.at(this.#clock.now() + limitMs, () => resolve(late(method, limitMs)));
        this.#exchange.send(requestText(id, method, params));
      });
      return this.#resultIn(answer, method);
    } finally {
      disarm();
      this.#all.delete(id);
      this.#open.delete(settle);
    }
  }

  #end(reason: Error): void {
    this.#ended ??= reason;
    for (const settle of this.#open) settle(reason);
  }

  #resultIn(answer: CallAnswer | Error, method: string): Json {
    if (answer instanceof Error) throw answer;
    if (answer.kind === "result") return answer.result;
    const { code, message } = answer.error;
    throw new LongshoreError(meaningOf(code, message, this.#dialect), `The runtime refused ${method} (${code}): ${message}`);
  }
}

function late(method: string, limitMs: number): LongshoreError {
  return new LongshoreError("LONGSHORE_DEADLINE", `The runtime did not answer ${method} within ${limitMs} ms.`);
}
