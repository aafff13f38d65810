// The connection to a NATS server. When it is lost, it is opened again, with its streams and consumers. Publishers wait for it. A message
// without an answer is sent again with the same `Nats-Msg-Id`, so that NATS does not store it twice.

import { type Clock, pause } from "../../../../core/clock.ts";
import type { FailureListener } from "../../../../core/failure-listener.ts";
import { Waiters } from "../../../../core/waiters.ts";
import type { NatsClient, NatsConnection } from "../../wire/nats/client.ts";
import { ensureConsumer } from "../../wire/nats/consumer.ts";
import { guarded } from "../../wire/nats/guard.ts";
import { liveness, serversOf } from "../../wire/nats/servers.ts";
import { ensureStream, subjectOf } from "./stream.ts";

export interface NatsConnectionOptions {
  readonly client: NatsClient;
  readonly url: string;
  readonly consumer: string;
  readonly streams: readonly string[];
  readonly clock: Clock;
  readonly trouble: FailureListener;
}

export type Published =
  | { readonly kind: "stored"; readonly sequence: number }
  | { readonly kind: "too-large"; readonly bytesMax: number }
  | { readonly kind: "given-up" };

type JetStreamClient = ReturnType<NatsClient["jetstream"]["jetstream"]>;
type JetStreamManager = Awaited<ReturnType<NatsClient["jetstream"]["jetstreamManager"]>>;

interface Live {
  readonly connection: NatsConnection;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
}

/** Timeout for opening a connection and for each answer. A slower server counts as lost. */
const answerMs = 5_000;
/** Pause between two tries. */
const retryMs = 500;

export class NatsServerConnection {
  readonly #options: NatsConnectionOptions;
  readonly #waiting = new Waiters();
  /** Streams that are being created; publishers that miss a stream wait for the same promise. */
  readonly #preparing = new Map<string, Promise<void>>();
  #live: Live | undefined;

  constructor(options: NatsConnectionOptions) {
    this.#options = options;
  }

  /** Connects and reconnects until the signal aborts; then closes. Never rejects. */
  async run(gone: AbortSignal): Promise<void> {
    const { clock, trouble, url } = this.#options;
    const what = `the connection to NATS at ${withoutLogin(url)}`;
    while (!gone.aborted) {
      try {
        const live = await unlessGone(this.#connect(), gone);
        if (live === undefined) return;
        trouble.working(what);
        this.#live = live;
        this.#waiting.wake();
        await closedOrGone(live.connection, gone);
      } catch (error) {
        trouble.failing(what, error);
      }
      this.#live = undefined;
      await pause(clock, retryMs, gone);
    }
  }

  /** Tries until the message is stored or `over` aborts. */
  async publish(stream: string, bytes: Uint8Array, id: string, over: AbortSignal): Promise<Published> {
    const { clock, trouble } = this.#options;
    const what = `publishing to the stream ${stream}`;
    while (!over.aborted) {
      const live = this.#live;
      if (live === undefined) {
        await this.#waiting.wait(over);
        continue;
      }
      const bytesMax = live.connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
      if (bytes.length > bytesMax - headerBytesMax) return { kind: "too-large", bytesMax };
      try {
        const { seq } = await live.client.publish(subjectOf(stream), bytes, { msgID: id, timeout: answerMs });
        trouble.working(what);
        return { kind: "stored", sequence: seq };
      } catch (error) {
        if (over.aborted) break;
        trouble.failing(what, error);
        // The server may have lost its storage, so a missing stream is created again.
        await this.#prepare(live, stream).catch(() => {});
        await pause(clock, retryMs, over);
      }
    }
    return { kind: "given-up" };
  }

  /** Returns true when the message was still in the stream. */
  async remove(stream: string, sequence: number): Promise<boolean> {
    try {
      return (await this.#live?.manager.streams.deleteMessage(stream, sequence, false)) ?? false;
    } catch {
      // A worker has taken the message, or the server cannot be reached. In both cases, a reader of the message will find that the task is
      // gone.
      return false;
    }
  }

  async #connect(): Promise<Live> {
    const { client, url, streams } = this.#options;
    const { servers, access } = serversOf(url);
    const options = {
      ...access,
      servers: [...servers],
      name: "longshore",
      timeout: answerMs,
      ...liveness,
      // `run` reconnects instead: waiting calls get the error at once, and the streams are created again if the server has lost its store.
      reconnect: false,
    };
    const connection = await guarded(() => client.transport.connect(options));
    try {
      const manager = await client.jetstream.jetstreamManager(connection, { checkAPI: false, timeout: answerMs });
      const live = { connection, manager, client: client.jetstream.jetstream(connection, { timeout: answerMs }) };
      for (const stream of streams) await this.#prepare(live, stream);
      return live;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  #prepare(live: Live, stream: string): Promise<void> {
    let preparing = this.#preparing.get(stream);
    if (preparing === undefined) {
      preparing = this.#make(live, stream).finally(() => this.#preparing.delete(stream));
      this.#preparing.set(stream, preparing);
    }
    return preparing;
  }

  async #make({ connection, manager }: Live, stream: string): Promise<void> {
    const { client, consumer } = this.#options;
    await ensureStream(client.jetstream, manager, stream);
    await ensureConsumer(client.jetstream, connection, stream, consumer);
  }
}

/** Room for the headers of a message with an id. The client adds them, and they count against `max_payload`. */
const headerBytesMax = 1_024;

/** Undefined when the signal aborts first; a connection that opens later is then closed. */
function unlessGone(connecting: Promise<Live>, gone: AbortSignal): Promise<Live | undefined> {
  return new Promise((resolve, reject) => {
    const leave = () => resolve(undefined);
    gone.addEventListener("abort", leave, { once: true });
    if (gone.aborted) leave();
    connecting
      .then((live) => {
        if (gone.aborted) void live.connection.close();
        else resolve(live);
      }, reject)
      .finally(() => gone.removeEventListener("abort", leave));
  });
}

async function closedOrGone(connection: NatsConnection, gone: AbortSignal): Promise<void> {
  const leave = () => void connection.close();
  gone.addEventListener("abort", leave, { once: true });
  if (gone.aborted) leave();
  await connection.closed();
  gone.removeEventListener("abort", leave);
}

function withoutLogin(url: string): string {
  return url.replaceAll(/\/\/[^/@]*@/g, "//");
}
