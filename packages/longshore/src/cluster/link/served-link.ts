// The owner's end of one link, after the handshake: carries out the calls of a node and sends it events.

import { LongshoreError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { inLaterTurns } from "../../core/slices/later-turns.ts";
import type { LoopTurns } from "../../core/slices/loop-turns.ts";
import { Answers } from "./answers.ts";
import { carriedError } from "./carried-error.ts";
import { BadFrame, exceeds, messageValues } from "./frames.ts";
import { endedAtOnce, type LinkLimits } from "./limits.ts";
import { kinds, messageOf, repeatMark, signOf } from "./messages.ts";
import type { LinkCall, LinkEnd, LinkService, LinkStream } from "./service.ts";
import { tooSlow, type Wire, type WireEvents } from "./wire.ts";

export interface ServedLinkOptions {
  readonly wire: Wire;
  readonly service: LinkService;
  readonly limits: LinkLimits;
  readonly logger?: Logger;
  /** Limits the answers that are made for all links in one turn of the event loop. */
  readonly answerTurns: LoopTurns;
  /** The node at the other end. */
  readonly node: string;
  /** One for each client of that node; the first part of the keys of its calls. */
  readonly life: string;
  /** Called for each call that begins. */
  began(): void;
  ended(reason: string): void;
}

export class ServedLink implements WireEvents, LinkEnd {
  readonly #options: ServedLinkOptions;
  readonly #wire: Wire;
  readonly #answers: Answers;
  readonly #calls = new Map<number, ServedCall>();
  readonly #streams = new Map<number, ServedStream>();

  constructor(options: ServedLinkOptions) {
    this.#options = options;
    this.#wire = options.wire;
    const { sendingBytes } = options.limits;
    this.#answers = new Answers({
      turns: options.answerTurns,
      charsMax: sendingBytes,
      make: (kind, id, value) => this.#send(kind, id, value),
      full: () => this.#wire.cut(tooSlow(sendingBytes)),
    });
  }

  get isOver(): boolean {
    return this.#wire.broken;
  }

  /** Ends the link after the answers that wait for a later turn. */
  async end(reason: string): Promise<void> {
    while (this.#answers.areWaiting) await new Promise((resolve) => setImmediate(resolve));
    this.#wire.end(reason);
  }

  /** Calls that are being carried out, or whose answer waits. */
  get calls(): number {
    return this.#calls.size;
  }

  get streams(): number {
    return this.#streams.size;
  }

  message([kind, id, third, fourth, mark]: readonly unknown[]): void {
    if (typeof id !== "number") throw new BadFrame("A message has no number.");
    if (kind === kinds.call) this.#call(id, nameIn(third), fourth, mark === repeatMark);
    else if (kind === kinds.abort) this.#calls.get(id)?.abort();
    else if (kind === kinds.open) this.#open(id, nameIn(third), fourth);
    else if (kind === kinds.close) this.#close(id);
    else throw new BadFrame(`A node sends no message of kind ${JSON.stringify(kind)}.`);
  }

  broken(reason: string): void {
    const [calls, streams] = [[...this.#calls.values()], [...this.#streams.values()]];
    this.#calls.clear();
    this.#streams.clear();
    this.#answers.clear();
    inLaterTurns(calls, endedAtOnce, (call) => call.abort());
    inLaterTurns(streams, endedAtOnce, (stream) => this.#release(stream));
    this.#options.service.left?.(this);
    this.#options.ended(reason);
  }

  #call(id: number, name: string, args: unknown, isRepeat: boolean): void {
    const { service, limits, node, life } = this.#options;
    if (this.#calls.has(id)) throw new BadFrame(`Call ${id} was sent twice.`);
    const call = new ServedCall({ node, life, link: this }, id, isRepeat);
    this.#calls.set(id, call);
    this.#options.began();
    if (this.#calls.size > limits.calls) return this.#fail(id, tooManyCalls(limits.calls));
    try {
      service.call(name, args, call).then(
        (result) => this.#answer(id, call, result),
        (error: unknown) => this.#fail(id, error, call),
      );
    } catch (error) {
      this.#fail(id, error, call);
    }
  }

  #answer(id: number, call: ServedCall, result: unknown): void {
    // The link broke meanwhile; the node sends the call again.
    if (this.#calls.get(id) === call) this.#answers.add(kinds.answer, id, result);
  }

  #fail(id: number, error: unknown, call = this.#calls.get(id)): void {
    if (call !== undefined && this.#calls.get(id) === call) this.#answers.add(kinds.failure, id, carriedError(error));
  }

  /** Returns the characters of the answer. */
  #send(kind: number, id: number, value: unknown): number {
    const text = this.#textOf(kind, id, value);
    this.#calls.delete(id);
    this.#wire.send(text);
    return text.length;
  }

  #textOf(kind: number, id: number, value: unknown): string {
    const { frameBytes } = this.#options.limits;
    try {
      const text = messageOf(kind, id, value);
      if (!exceeds(text, value, frameBytes)) return text;
    } catch (error) {
      return messageOf(kinds.failure, id, carriedError(error));
    }
    return messageOf(kinds.failure, id, carriedError(tooLarge("The answer", frameBytes)));
  }

  #open(id: number, name: string, args: unknown): void {
    if (this.#streams.has(id)) throw new BadFrame(`Stream ${id} was opened twice.`);
    const { service, limits, node } = this.#options;
    const stream: ServedStream = { close: undefined };
    this.#streams.set(id, stream);
    if (this.#streams.size > limits.calls) return this.#end(id, stream, tooManyCalls(limits.calls));
    // Sent before the stream opens below, so that it arrives before the first event.
    this.#wire.send(signOf(kinds.opened, id));
    const outlet: LinkStream = {
      node,
      emit: (event) => this.#emit(id, stream, event),
      end: (error) => this.#end(id, stream, error),
    };
    try {
      stream.close = service.open(name, args, outlet);
    } catch (error) {
      this.#end(id, stream, error);
    }
  }

  #emit(id: number, stream: ServedStream, event: unknown): void {
    if (this.#streams.get(id) !== stream) return;
    const text = messageOf(kinds.event, id, event);
    const { frameBytes } = this.#options.limits;
    if (exceeds(text, event, frameBytes)) throw tooLarge("An event", frameBytes);
    this.#wire.send(text);
  }

  #end(id: number, stream: ServedStream, error?: unknown): void {
    if (this.#streams.get(id) !== stream) return;
    this.#streams.delete(id);
    this.#wire.send(messageOf(kinds.ended, id, error === undefined ? undefined : carriedError(error)));
  }

  #close(id: number): void {
    const stream = this.#streams.get(id);
    // The owner had ended the stream before the node closed it.
    if (stream === undefined) return;
    this.#streams.delete(id);
    this.#release(stream);
  }

  #release({ close }: ServedStream): void {
    try {
      close?.();
    } catch (error) {
      this.#options.logger?.error("A stream to a node could not be closed", { node: this.#options.node, error });
    }
  }
}

interface ServedStream {
  /** Absent until the service has opened it. */
  close: (() => void) | undefined;
}

class ServedCall implements LinkCall {
  readonly node: string;
  readonly link: LinkEnd;
  readonly isRepeat: boolean;
  readonly #life: string;
  readonly #id: number;
  /** Made when the service reads `signal`. Most calls never do, and a controller costs as much as the rest of a call. */
  #controller: AbortController | undefined;
  #aborted = false;

  constructor({ node, life, link }: { node: string; life: string; link: LinkEnd }, id: number, isRepeat: boolean) {
    this.node = node;
    this.link = link;
    this.isRepeat = isRepeat;
    this.#life = life;
    this.#id = id;
  }

  get key(): string {
    return `${this.#life}.${this.#id}`;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  abort(): void {
    this.#aborted = true;
    this.#controller?.abort();
  }
}

function nameIn(value: unknown): string {
  if (typeof value !== "string") throw new BadFrame("A message has no name.");
  return value;
}

function tooManyCalls(max: number): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `More than ${max} calls or streams of this node wait at the owner; call again later.`);
}

/** For what does not fit into a frame. */
export function tooLarge(what: string, bytesMax: number): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_LIMIT",
    `${what} takes more than the ${bytesMax} bytes, or has more than the ${messageValues} values, that a link between nodes carries at once.`,
  );
}
