// Opens connections to the first host of an address that accepts writes. A standby does not: it would refuse work, and its data may be old.

import { LongshoreError, toError } from "../../core/errors.ts";
import type { PostgresAddress } from "./address.ts";
import { loadPg, type PgClient, type PgModule } from "./package.ts";

export interface ConnectOptions {
  /** A name that PostgreSQL shows in its list of sessions. */
  readonly role: string;
  /** Settings of the session, as `-c name=value`. */
  readonly settings: string;
  /** True when nothing is written, so that a standby is accepted. */
  readonly readOnly?: boolean;
  /** How long PostgreSQL may take to accept the connection. */
  readonly withinMs?: number;
}

export type Connect = (options: ConnectOptions) => Promise<PgClient>;

/** The oldest version that supports all of our statements. */
const versionMin = 13;
export const connectMsMax = 5_000;

/** What PostgreSQL reports of itself when a session begins. */
type Report = ReadonlyMap<string, string>;

export async function connector({ hosts, settings: own }: PostgresAddress): Promise<Connect> {
  const pg = await loadPg();
  /** The host that accepted the last connection is tried first. */
  let first = 0;
  return async (options) => {
    const errors: Error[] = [];
    for (let tried = 0; tried < hosts.length; tried++) {
      const at = (first + tried) % hosts.length;
      const { name, connectionString } = hosts[at] as (typeof hosts)[number];
      try {
        const client = await connectTo(pg, connectionString, { ...options, settings: `${own} ${options.settings}`.trim() });
        first = at;
        return client;
      } catch (thrown) {
        const error = toError(thrown);
        // The other hosts have the same version and the same roles, so they would refuse as well.
        if (hosts.length === 1 || error instanceof LongshoreError) throw error;
        errors.push(Object.assign(new Error(`${name}: ${textOf(error)}`), { code: (error as { code?: unknown }).code }));
      }
    }
    const code = errors.map((error) => (error as { code?: unknown }).code).find((each) => each !== readOnlyCode);
    throw Object.assign(new Error(errors.map(({ message }) => message).join("; ")), { code: code ?? readOnlyCode });
  };
}

/** "cannot execute ... in a read-only transaction". */
const readOnlyCode = "25006";

async function connectTo(
  { Client }: PgModule,
  connectionString: string,
  { role, settings, readOnly, withinMs = connectMsMax }: ConnectOptions,
): Promise<PgClient> {
  const client = new Client({
    connectionString,
    application_name: `longshore ${role}`,
    options: settings,
    connectionTimeoutMillis: withinMs,
    keepAlive: true,
  });
  const report = new Map<string, string>();
  client.connection.on("parameterStatus", ({ parameterName, parameterValue }) => report.set(parameterName, parameterValue));
  // An error without a listener would end the process. The caller that uses the connection gets it as well.
  client.on("error", () => {});
  await client.connect();
  try {
    refuseVersion(report);
    if (!readOnly && (await onlyReads(client, report)))
      throw Object.assign(new Error("this PostgreSQL only reads: it is a standby, or set to be read-only"), { code: readOnlyCode });
    return client;
  } catch (error) {
    // The error that is thrown later has the reason.
    await client.end().catch(() => {});
    throw error;
  }
}

function refuseVersion(report: Report): void {
  const version = report.get("server_version") ?? "";
  if (!(Number.parseInt(version, 10) < versionMin)) return;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `PostgreSQL ${version} is too old: Longshore needs version ${versionMin} or newer.`);
}

/** From version 14 on, PostgreSQL reports this itself. */
async function onlyReads(client: PgClient, report: Report): Promise<boolean> {
  const standby = report.get("in_hot_standby");
  if (standby !== undefined) return standby === "on" || report.get("default_transaction_read_only") === "on";
  const { rows } = await client.query("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS reads");
  return rows[0]?.reads === true;
}

/** When a host has several addresses, its error has no text: the errors inside it have one. */
export function textOf(error: Error): string {
  return error.message || String((error as { code?: unknown }).code ?? error.name);
}
