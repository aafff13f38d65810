// The address of data in PostgreSQL: postgres://user:password@host:port,other:port/database?schema=longshore. It is shown without the password.

import { LongshoreError } from "../../core/errors.ts";

export interface PostgresAddress {
  /** The addresses of the hosts, in the order in which they are tried. */
  readonly hosts: readonly { readonly name: string; readonly connectionString: string }[];
  readonly schema: string;
  /** For people and for logs: without the password. */
  readonly shown: string;
  /** The same without the schema, as PostgreSQL's own programs expect it. */
  readonly plain: string;
  /** Settings of sessions that are in the address. */
  readonly settings: string;
  /** The password, in each form that may appear in a text. */
  readonly secrets: readonly string[];
}

const schemaDefault = "longshore";
/** Maximum number of hosts. They are tried one after the other, so a long list would delay every start. */
const hostsMax = 16;
const form = /^(postgres(?:ql)?):\/\/(?:([^/?#]*)@)?([^/?#@]*)(\/[^?#]*)?(?:\?([^#]*))?$/;
const example = "expected postgres://user@host:5432/database?schema=longshore";
const encoding = "In a password, write / as %2F, ? as %3F, # as %23.";
/** Parameters that are passwords, as PostgreSQL's own programs name them. */
const secretParameters = ["password", "sslpassword"] as const;

/** Whether a text is the address of data in PostgreSQL rather than the name of a folder. */
export function isAddress(text: string): boolean {
  return /^postgres(?:ql)?:/i.test(text);
}

/** Throws LONGSHORE_BAD_CONFIG for an address that cannot be used. The error does not show the address: it may have a password. */
export function readAddress(url: string): PostgresAddress {
  const match = form.exec(url);
  if (match === null)
    throw bad(isAddress(url) ? `cannot be read; ${example}. ${encoding}` : `is not an address of PostgreSQL; ${example}.`);
  const [, scheme, login = "", list = "", path = "", query = ""] = match;
  const [user = "", ...rest] = login.split(":");
  const password = rest.join(":");
  const parameters = new URLSearchParams(query);
  const schema = parameters.get("schema") ?? schemaDefault;
  refuseSchema(schema);
  const settings = parameters.get("options") ?? "";
  for (const own of ["schema", "options"]) parameters.delete(own);
  const names = list.split(",");
  if (names.length > hostsMax) throw bad(`has ${names.length} hosts; at most ${hostsMax} are tried.`);
  const hosts = names.map((name) => {
    const connectionString = `${scheme}://${login === "" ? "" : `${login}@`}${name}${path}${textOf(parameters)}`;
    // Checked here, because the library parses it later, and its error does not explain what to do.
    // The host is not shown: behind a `/` that is not encoded, it is a part of the password.
    if (!URL.canParse(connectionString)) throw bad(`has a host or port that cannot be read; ${example}. ${encoding}`);
    return { name: parameters.get("host") ?? name, connectionString };
  });
  const given = [password, ...secretParameters.map((name) => parameters.get(name) ?? "")].filter((text) => text !== "");
  for (const name of secretParameters) parameters.delete(name);
  const plain = `${scheme}://${user === "" ? "" : `${user}@`}${list}${path}${textOf(parameters)}`;
  parameters.set("schema", schema);
  const shown = `${scheme}://${user === "" ? "" : `${user}@`}${list}${path}${textOf(parameters)}`;
  return { hosts, schema, settings, shown, plain, secrets: [...new Set(given.flatMap((text) => [text, decoded(text)]))] };
}

function refuseSchema(schema: string): void {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) return;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `"${schema}" cannot be the name of a schema: expected at most 63 small letters, digits and underscores, and no digit at the beginning.`,
  );
}

function textOf(parameters: URLSearchParams): string {
  return parameters.size === 0 ? "" : `?${parameters}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The password is not encoded, so the text itself is the secret.
    return text;
  }
}

function bad(what: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `The address of the store ${what}`);
}
