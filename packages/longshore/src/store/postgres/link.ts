// One connection to PostgreSQL. It is opened at the first call, and again after it was lost. The statements of one call of `run` are sent in one
// message with one Sync: PostgreSQL makes them one transaction, all or nothing, and responds once. Each statement is prepared on its first use.

import { setTimeout as delay } from "node:timers/promises";
import { toError } from "../../core/errors.ts";
import type { Parameter, PgClient, PgConnection, RawRow, Submittable } from "./package.ts";

export interface Statement {
  /** The name under which it is prepared. */
  readonly name: string;
  readonly text: string;
}

/** A statement with its values. */
export interface Call {
  readonly statement: Statement;
  readonly values: readonly Parameter[];
}

/** A connection that does not respond for this long is given up. Each of our statements takes less than a tenth of this time. */
export const responseMsDefault = 30_000;

/** An open connection, with the statements that are prepared on it. */
interface Session {
  readonly client: PgClient;
  /** How long a response may take. */
  readonly responseMs: number;
  readonly prepared: Set<string>;
  current: Pipeline | null;
}

/** The outcome of the statements is not known, because the connection ended before the response. */
export class Lost extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/** Nothing was sent: no connection could be opened. */
export class Unsent extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

export class Link {
  readonly #connect: () => Promise<PgClient>;
  readonly #responseMs: number;
  #session: Promise<Session> | null = null;
  #pending = 0;
  /** Settles when the last call has settled; never rejects. */
  #last: Promise<void> = Promise.resolve();
  #closed = false;
  /** Called when an open connection ends. */
  onLost: () => void = () => {};

  constructor(connect: () => Promise<PgClient>, responseMs: number = responseMsDefault) {
    this.#connect = connect;
    this.#responseMs = responseMs;
  }

  /** The number of calls without a response. */
  get pending(): number {
    return this.#pending;
  }

  /** The rows of each call. Rejects with `Lost` when the transaction may have been committed. */
  run(calls: readonly Call[]): Promise<RawRow[][]> {
    // Calls are sent one after the other, because the client library will remove its own queue. A call that waits here is not lost with the
    // connection.
    const done = this.#pending === 0 ? this.#send(calls) : this.#last.then(() => this.#send(calls));
    this.#pending++;
    const over = () => {
      this.#pending--;
    };
    this.#last = done.then(over, over);
    return done;
  }

  async #send(calls: readonly Call[]): Promise<RawRow[][]> {
    const session = await this.#open().catch((error: unknown) => {
      throw new Unsent(toError(error));
    });
    return new Promise((resolve, reject) => {
      session.client.query(new Pipeline(session, calls, resolve, reject));
    });
  }

  /** Cuts the connection without notice to PostgreSQL; the next call opens another. */
  drop(): void {
    const session = this.#session;
    this.#session = null;
    session?.then(({ client }) => client.connection.stream.destroy()).catch(() => {});
  }

  async close(): Promise<void> {
    this.#closed = true;
    const session = await this.#session?.catch(() => null);
    this.#session = null;
    // A server that does not respond must not delay the end of this process.
    if (session) await Promise.race([session.client.end().catch(() => {}), delay(1_000, undefined, { ref: false })]);
    session?.client.connection.stream.destroy();
  }

  #open(): Promise<Session> {
    if (this.#closed) return Promise.reject(new Error("The connection to PostgreSQL has been closed."));
    this.#session ??= this.#start();
    return this.#session;
  }

  #start(): Promise<Session> {
    const started = this.#connect().then((client) => {
      const session: Session = { client, responseMs: this.#responseMs, prepared: new Set(), current: null };
      client.connection.on("parseComplete", () => session.current?.parsed());
      const lost = () => {
        if (this.#session !== started) return;
        this.#session = null;
        this.onLost();
      };
      // The library itself reports the error to the call that is in progress.
      client.on("error", lost);
      client.on("end", lost);
      return session;
    });
    started.catch(() => {
      if (this.#session === started) this.#session = null;
    });
    return started;
  }
}

/** Statements on their way, and their rows. */
class Pipeline implements Submittable {
  readonly #session: Session;
  readonly #calls: readonly Call[];
  readonly #resolve: (rows: RawRow[][]) => void;
  readonly #reject: (error: Error) => void;
  readonly #rows: RawRow[][];
  /** The names of the statements that this message prepares, in order. PostgreSQL has confirmed the first `#parsed` of them. */
  readonly #fresh: string[] = [];
  #parsed = 0;
  #at = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(session: Session, calls: readonly Call[], resolve: (rows: RawRow[][]) => void, reject: (error: Error) => void) {
    this.#session = session;
    this.#calls = calls;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#rows = calls.map(() => []);
  }

  submit(connection: PgConnection): void {
    const { prepared, responseMs } = this.#session;
    this.#session.current = this;
    this.#timer = setTimeout(() => connection.stream.destroy(), responseMs);
    connection.stream.cork();
    for (const { statement, values } of this.#calls) {
      if (!prepared.has(statement.name)) {
        prepared.add(statement.name);
        this.#fresh.push(statement.name);
        connection.parse(statement);
      }
      connection.bind({ statement: statement.name, values });
      connection.execute();
    }
    connection.sync();
    connection.stream.uncork();
  }

  parsed(): void {
    this.#parsed++;
  }

  handleDataRow({ fields }: { readonly fields: RawRow }): void {
    this.#rows[this.#at]?.push(fields);
  }

  handleCommandComplete(): void {
    this.#at++;
  }

  handleReadyForQuery(): void {
    this.#end();
    this.#resolve(this.#rows);
  }

  handleError(error: Error): void {
    this.#end();
    // PostgreSQL ignores everything after an error. So statements without a confirmation are not prepared.
    for (const name of this.#fresh.slice(this.#parsed)) this.#session.prepared.delete(name);
    // An error that ends the connection may arrive after the commit.
    const { severity } = error as { severity?: string };
    this.#reject(severity === "ERROR" ? toError(error) : new Lost(toError(error)));
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}

  #end(): void {
    clearTimeout(this.#timer);
    this.#session.current = null;
  }
}
