// The client library for PostgreSQL, which users install themselves. Its few types are declared here, so that a program that imports
// Longshore needs no types of the library.

import { LongshoreError } from "../../core/errors.ts";

/** An object that the library accepts instead of one of its own queries. */
export interface Submittable {
  submit(connection: PgConnection): void;
  handleDataRow(message: { readonly fields: RawRow }): void;
  handleCommandComplete(): void;
  handleReadyForQuery(): void;
  handleError(error: Error): void;
  handleEmptyQuery(): void;
  handlePortalSuspended(): void;
}

/** A row as PostgreSQL sends it: each value is text. */
export type RawRow = readonly (string | null)[];

export interface PgConnection {
  readonly stream: { cork(): void; uncork(): void; destroy(): void };
  parse(statement: { name: string; text: string }): void;
  bind(values: { statement: string; values: readonly Parameter[] }): void;
  execute(): void;
  sync(): void;
  on(event: "parseComplete", listener: () => void): void;
  on(event: "parameterStatus", listener: (status: { readonly parameterName: string; readonly parameterValue: string }) => void): void;
}

/** A text, or bytes in PostgreSQL's binary format. */
export type Parameter = string | Buffer | null;

export interface PgClient {
  readonly connection: PgConnection;
  connect(): Promise<void>;
  query(submittable: Submittable): void;
  query(text: string): Promise<{ rows: { [column: string]: unknown }[] }>;
  on(event: "error" | "end", listener: (error?: Error) => void): void;
  end(): Promise<void>;
}

export interface PgClientOptions {
  readonly connectionString: string;
  readonly options: string;
  readonly application_name: string;
  readonly connectionTimeoutMillis: number;
  readonly keepAlive: true;
}

export interface PgModule {
  readonly Client: new (options: PgClientOptions) => PgClient;
}

export async function loadPg(load: () => Promise<unknown> = importPg): Promise<PgModule> {
  try {
    const loaded = (await load()) as PgModule & { default?: PgModule };
    return loaded.default ?? loaded;
  } catch (cause) {
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      "A store in PostgreSQL needs the package pg, which is not installed. Run: npm install pg@8",
      { cause },
    );
  }
}

function importPg(): Promise<unknown> {
  return import("pg");
}
