// Runs on the owner: performs the requests that other nodes pass to it, with the same routes and methods as requests on its own port.

import { Readable } from "node:stream";
import { type Action, actions } from "../core/actions.ts";
import { ByteBudget } from "../core/byte-budget.ts";
import type { Clock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import { parseLarge, sliceChars } from "../core/json/json-slices.ts";
import type { RequestIds } from "../core/request-ids.ts";
import type { GrpcCall, GrpcMethod, GrpcSink } from "../net/grpc/service.ts";
import { GrpcError } from "../net/grpc/status.ts";
import type { HttpReply, Route, RouteGroup } from "../net/http/http.ts";
import { type HttpLimits, httpLimits } from "../net/listener/limits.ts";
import { problemIn } from "../net/listener/problems.ts";
import type { CarriedCall } from "./carried-call.ts";
import type { CarriedReply } from "./carried-reply.ts";
import { carriedStatus, piecesOf, wholeReply } from "./carried-reply.ts";
import { Callers, type CarriedRequest, noStream, PerformedRequest, type Performing, routeName } from "./carried-request.ts";
import type { LinkCall, LinkEnd, LinkService } from "./link/service.ts";
import { eventSink, type ReplyStream, ReplyStreams } from "./reply-streams.ts";
import { type CarriedPiece, Uploads } from "./uploads.ts";
import { Waits } from "./waits.ts";

/** The routes and methods of the protocols on the owned data. */
export interface LiveTable {
  readonly groups: readonly RouteGroup[];
  readonly methods: readonly GrpcMethod[];
}

export interface PerformerDeps {
  readonly table: LiveTable;
  readonly clock: Clock;
  readonly ids: RequestIds;
  /** Performs a call of a program that runs in the process of another node, such as `server.start`. */
  program(verb: string, given: readonly unknown[]): Promise<unknown>;
  /** The answers that are kept with the data, by the id of their request. */
  readonly answers: { answer(id: string): Promise<string | null>; keepAnswer(id: string, answer: string): Promise<void> };
  /** The limits of the listener. */
  readonly limits?: Partial<Pick<HttpLimits, "receivingBytes" | "payloadValues">>;
  /** True when this node does not own the data any more: then it must not send any reply. */
  isOver(): boolean;
}

/**
 * Actions of workers. Their requests are identified by other values, such as the grant of a task. All other changes are tracked by the id
 * of the request.
 */
const untracked: ReadonlySet<Action> = new Set([...(["task.claim", "task.report", "worker.sign", "part.write", "bus.take"] as const)]);

/**
 * Changes whose answer is stored, because performing them again would give another answer: a run that was retried is running, and cannot be
 * retried again. A crash between the change and the storing of its answer loses only the answer. The change itself is never made twice.
 */
const keepsAnswer: ReadonlySet<Action> = new Set([
  ...([
    "run.steer",
    "run.remove",
    "worker.steer",
    "schedule.write",
    "schedule.steer",
    "task.signal",
    "definition.write",
    "definition.remove",
    "task-definition.write",
  ] as const),
]);
/** A longer answer is not kept. */
const keptCharsMax = 65_536;

/** Whether a request for this action is performed under its id. */
export function isTracked(action: Action): boolean {
  return !actions[action].reads && !untracked.has(action);
}

/** How long a node whose link broke may take to connect again. It tries each second. */
const unconfirmedMsMax = 60_000;

/** A promise that never settles. Each caller gets a new one: otherwise the memory of everything that waits for it would never be freed. */
const never = (): Promise<never> => new Promise(() => {});

export class Performer implements LinkService {
  readonly #deps: PerformerDeps;
  readonly #routes = new Map<string, { readonly route: Route; readonly group: RouteGroup }>();
  readonly #methods = new Map<string, GrpcMethod>();
  readonly #callers = new Callers();
  readonly #streams: ReplyStreams;
  readonly #uploads: Uploads = new Uploads();
  readonly #waits = new Waits();
  readonly #texts: Performing["texts"];
  /** Tracked requests that are being performed. When such a request is sent again meanwhile, the second waits for the first. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  #inProgress = 0;
  #draining = false;
  /** The number of long bodies of replies that are being sent. */
  #bodies = 0;
  /** Called when something has ended that `drain` may wait for. */
  #changed: (() => void) | undefined;
  /** Replies that their nodes have not confirmed, by request. */
  readonly #unconfirmed = new Map<string, { readonly link: LinkEnd; readonly undelivered: () => void }>();

  constructor(deps: PerformerDeps) {
    this.#deps = deps;
    this.#streams = new ReplyStreams(deps.clock);
    const { receivingBytes, payloadValues } = { ...httpLimits, ...deps.limits };
    this.#texts = { budget: new ByteBudget(receivingBytes), valuesMax: payloadValues };
    for (const group of deps.table.groups) for (const route of group.routes) this.#routes.set(routeName(route), { route, group });
    for (const method of deps.table.methods) this.#methods.set(method.path, method);
  }

  /** When this node must not perform a call any more, it sends no answer. The link is cut, and the next owner performs the call. */
  async call(name: string, args: unknown, call: LinkCall): Promise<unknown> {
    if (name === "pull") return this.#streams.pull(args as string, call.signal);
    if (this.#draining && name !== "confirm" && name !== "piece") return never();
    this.#inProgress++;
    try {
      return await this.#perform(name, args, call);
    } finally {
      this.#inProgress--;
      this.#changed?.();
      if (this.#deps.isOver()) await never();
    }
  }

  /** Waits until all long bodies are sent, because they cannot be sent again. */
  async bodies(msMax: number): Promise<void> {
    await this.#until(() => this.#bodies === 0 && this.#uploads.size === 0, msMax);
  }

  /** Begins no more calls, and waits up to `msMax` for those in progress. The next owner performs the others. */
  async drain(msMax: number): Promise<void> {
    this.#draining = true;
    await this.#until(() => this.#inProgress === 0 && this.#unconfirmed.size === 0, msMax);
    // Answers are passed to the links in this turn.
    await new Promise((resolve) => setImmediate(resolve));
  }

  async #until(condition: () => boolean, msMax: number): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, msMax);
      timer.unref();
      this.#changed = () => {
        if (!condition()) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#changed = undefined;
  }

  open(name: string): () => void {
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no stream ${name}.`);
  }

  /**
   * A link broke. A reply that its node has not confirmed may still have reached the client, so it is not taken back yet. A node that
   * connects again confirms the reply, or sends the request again. If no node connects again, what the reply granted ends with its lease.
   * Bodies that were being sent are lost.
   */
  left(link: LinkEnd): void {
    this.#streams.dropOf(link);
    this.#uploads.breakOf(link);
    const { clock } = this.#deps;
    const left = [...this.#unconfirmed].filter(([, reply]) => reply.link === link);
    if (left.length === 0) return;
    clock.at(clock.now() + unconfirmedMsMax, () => {
      for (const [id, reply] of left) if (this.#unconfirmed.get(id) === reply) this.#unconfirmed.delete(id);
    });
  }

  close(): void {
    this.#streams.close();
    this.#unconfirmed.clear();
    this.#uploads.close();
  }

  #perform(name: string, args: unknown, call: LinkCall): Promise<unknown> | unknown {
    switch (name) {
      case "request":
        return this.#request(args as CarriedRequest, call);
      case "grpc":
        return this.#grpc(args as CarriedCall, call);
      case "drop":
        return this.#streams.drop(args as string);
      case "piece":
        return this.#uploads.piece(args as CarriedPiece);
      case "dismiss":
        return this.#waits.dismiss(call.link);
      case "confirm":
        return this.#confirm(args as { delivered: readonly string[]; undelivered: readonly string[] });
      case "program": {
        const { verb, given, id, isRepeat } = args as { verb: string; given: readonly unknown[]; id: string; isRepeat?: boolean };
        return this.#deps.ids.within({ id, isRepeat: call.isRepeat || isRepeat === true }, () => this.#deps.program(verb, given));
      }
      default:
        throw new LongshoreError("LONGSHORE_NOT_FOUND", `The owner of the data does not know the call ${name}.`);
    }
  }

  async #request(carried: CarriedRequest, call: LinkCall): Promise<CarriedReply> {
    // The node sends the request again, so it did not get the reply: what the reply granted is taken back.
    if (call.isRepeat || carried.isRepeat) this.#takeBack(carried.id);
    const found = this.#routes.get(carried.route);
    if (found === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `The owner of the data has no route ${carried.route}.`);
    const { route, group } = found;
    const parsed = carried.text.length > sliceChars && !route.countsValues ? await parseLarge(carried.text) : undefined;
    const stream = this.#bodyOf(carried, call.link);
    const wait = this.#waits.of(call);
    const performing = { caller: this.#callers.of(carried.caller), call: wait, stream, texts: this.#texts };
    const request = new PerformedRequest(carried, performing, parsed);
    const work = async () => {
      try {
        return this.#carried(await route.handle(request), carried.id, call);
      } catch (error) {
        const problem = problemIn(error);
        if (problem !== undefined) return { status: problem.status, problem };
        const thrown = group.thrown?.(error);
        if (thrown === undefined) throw error;
        return this.#carried(thrown, carried.id, call);
      } finally {
        wait.end();
        if (carried.upload !== undefined) this.#uploads.end(carried.upload);
      }
    };
    return isTracked(route.action) ? this.#once(route.action, carried, call, work) : work();
  }

  /** Performs a tracked request, or returns the answer that was kept when it was performed before. */
  async #once<T extends object>(action: Action, { id, isRepeat: again }: Tracked, call: LinkCall, work: () => Promise<T>): Promise<T> {
    const { answers, ids } = this.#deps;
    const isRepeat = call.isRepeat || again === true;
    // The first caller gets the error.
    await this.#underWay.get(id)?.catch(() => {});
    const kept = isRepeat && keepsAnswer.has(action) ? await answers.answer(id) : null;
    if (kept !== null) return JSON.parse(kept) as T;
    const performed = ids.within({ id, isRepeat }, work);
    this.#underWay.set(id, performed);
    try {
      const answer = await performed;
      if (keepsAnswer.has(action)) await this.#keep(id, answer);
      return answer;
    } finally {
      this.#underWay.delete(id);
      this.#changed?.();
    }
  }

  async #keep(id: string, answer: object): Promise<void> {
    // Such an answer is not complete: its body, its events or its confirmation follow.
    if ("body" in answer || "events" in answer || "confirm" in answer) return;
    const text = JSON.stringify(answer);
    if (text.length > keptCharsMax) return;
    // The change itself is made. If its answer cannot be stored, only a repeated request is affected.
    await this.#deps.answers.keepAnswer(id, text).catch(() => {});
  }

  #carried(reply: HttpReply, id: string, { link }: LinkCall): CarriedReply {
    const { status, headers, body, events, undelivered } = reply;
    const head = headers === undefined ? { status } : { status, headers };
    if (link.isOver) return this.#unheard(reply, head);
    if (undelivered !== undefined) this.#unconfirmed.set(id, { link, undelivered });
    const confirm = undelivered === undefined ? {} : { confirm: true as const };
    if (events !== undefined) {
      const stream = this.#streams.add(id, link);
      events(eventSink(stream));
      return { ...head, ...confirm, events: id };
    }
    const whole = wholeReply(reply);
    if (whole !== undefined) return undelivered === undefined ? whole : { ...whole, ...confirm };
    const long = typeof body === "string" ? Buffer.from(body) : (body as Exclude<HttpReply["body"], undefined | string>);
    const stream = this.#streams.add(id, link);
    this.#bodies++;
    void sendBody(stream, long).finally(() => {
      this.#bodies--;
      this.#changed?.();
    });
    return { ...head, ...confirm, body: id, ...(long instanceof Readable ? {} : { length: long.byteLength }) };
  }

  /** The link broke before there was a reply. The node sends the request again, and what the reply granted is taken back. */
  #unheard({ body, undelivered }: HttpReply, head: CarriedReply): CarriedReply {
    if (body instanceof Readable) body.destroy();
    undelivered?.();
    return head;
  }

  #bodyOf({ upload, bytes }: CarriedRequest, link: LinkEnd): Readable {
    if (bytes !== undefined) return Readable.from([Buffer.from(bytes, "base64")]);
    return upload === undefined ? noStream() : this.#uploads.begin(upload, link);
  }

  #confirm({ delivered, undelivered }: { delivered: readonly string[]; undelivered: readonly string[] }): void {
    for (const id of delivered) this.#unconfirmed.delete(id);
    for (const id of undelivered) this.#takeBack(id);
    this.#changed?.();
  }

  #takeBack(id: string): void {
    const reply = this.#unconfirmed.get(id);
    this.#unconfirmed.delete(id);
    reply?.undelivered();
  }

  async #grpc(carried: CarriedCall, link: LinkCall): Promise<unknown> {
    const method = this.#methods.get(carried.path);
    if (method === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `The owner of the data has no method ${carried.path}.`);
    const request = method.request.decode(Buffer.from(carried.message, "base64"));
    const { metadata, authority, peer, deadline } = carried;
    const call = { metadata, authority, peer, deadline, caller: this.#callers.of(carried.caller) };
    if (method.kind === "server-stream") return { stream: this.#openStream(method, request, call, carried.id, link) };
    const wait = this.#waits.of(link);
    const work = async () => {
      try {
        const waiting: GrpcCall = {
          ...{ ...call, id: carried.id },
          get gone() {
            return wait.signal;
          },
        };
        const response = await method.unary?.(request, waiting);
        return { message: Buffer.from(method.response.encode(response)).toString("base64") };
      } catch (error) {
        if (error instanceof GrpcError) return { status: carriedStatus(error) };
        throw error;
      } finally {
        wait.end();
      }
    };
    return isTracked(method.action) ? this.#once<object>(method.action, carried, link, work) : work();
  }

  #openStream(method: GrpcMethod, request: unknown, call: Omit<GrpcCall, "gone">, id: string, { link }: LinkCall): string {
    const stream = this.#streams.add(id, link);
    const end = (error?: unknown) => {
      const status = error instanceof GrpcError ? carriedStatus(error) : undefined;
      if (status === undefined) stream.end(error);
      else void stream.send({ status }, 0).then(() => stream.end());
    };
    const sink: GrpcSink<unknown> = {
      send(message) {
        const bytes = Buffer.from(method.response.encode(message)).toString("base64");
        return stream.send({ message: bytes }, bytes.length);
      },
      get idle() {
        return stream.isIdle;
      },
      end,
    };
    try {
      const done = method.stream?.(request, { ...call, gone: stream.gone }, sink);
      if (done instanceof Promise)
        done.then(
          () => stream.end(),
          (error: unknown) => end(error),
        );
    } catch (error) {
      end(error);
    }
    return id;
  }
}

/** A request or a call with an id. */
interface Tracked {
  readonly id: string;
  readonly isRepeat?: true;
}

async function sendBody(stream: ReplyStream, body: Exclude<HttpReply["body"], undefined>): Promise<void> {
  try {
    const pieces = body instanceof Readable ? body : piecesOf(body);
    for await (const piece of pieces) {
      const bytes = typeof piece === "string" ? Buffer.from(piece) : Buffer.from(piece as Uint8Array);
      await stream.send(bytes.toString("base64"), bytes.length);
      if (stream.gone.aborted) break;
    }
    stream.end();
  } catch (error) {
    stream.end(error);
  }
}
