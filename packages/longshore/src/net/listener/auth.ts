// Bearer tokens and what they allow. One text format for the command line and for the token file, which has one token per line:
//
//   SECRET                   everything (operator)
//   SCOPES:SECRET            SCOPES is a comma list of worker, operator, read
//   SCOPES:SECRET:NAME       NAME appears in logs and histories instead of a made-up one
//
// For example `worker:kV3mQ0rT8xLw2ZpB:build-machines`. A secret is 16 to 512 characters of A-Z a-z 0-9 - . _ ~ + / =, the alphabet that
// RFC 6750 gives to bearer tokens, so it never contains a colon. In a file, empty lines and lines that begin with # are skipped.
// core/actions.ts defines what each scope allows. Secrets are stored as digests only and appear in no message.

import { hash, timingSafeEqual } from "node:crypto";
import { type Caller, callerWith, type TokenScope } from "../../core/actions.ts";
import { LongshoreError } from "../../core/errors.ts";
import { readNamedFile } from "../../core/read-named-file.ts";

export interface Token {
  readonly secret: string;
  readonly scopes: readonly TokenScope[];
  readonly name: string;
}

export interface Auth {
  /** False when no token is configured: then callers are not authenticated. */
  readonly required: boolean;
  /** The caller of an `authorization` header; undefined when it is absent, malformed or unknown. */
  identify(authorization: string | undefined): Caller | undefined;
  /** The tokens without their secrets, and when each was last used since the start of this process. */
  uses(): readonly TokenUse[];
}

export interface TokenUse {
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  readonly usedAt: number | null;
}

/** Too long to guess over a network, even if a person typed the secret. */
const secretCharsMin = 16;
/** Limits the work of hashing for an unknown caller. */
const secretCharsMax = 512;
/** Every token is compared on every request, at about 0.2 us each. */
const tokensMax = 256;
/** Larger than `tokensMax` lines of the longest form. So a wrong file, such as a disk image, is not read completely. */
const tokenFileBytesMax = 262_144;

const digestChars = 64;
const secretPattern = /^[A-Za-z0-9\-._~+/]+=*$/;
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;
const tokenScopes: readonly string[] = ["worker", "operator", "read"] satisfies TokenScope[];

/** Builds the check. `equal` must take constant time. It is a parameter so that a test can check that it is called for every token. */
export function createAuth(
  tokens: readonly Token[],
  equal: (a: Uint8Array, b: Uint8Array) => boolean = timingSafeEqual,
  now: () => number = Date.now,
): Auth {
  if (tokens.length > tokensMax) throw badToken(`${tokens.length} tokens are configured`, `at most ${tokensMax}`);
  const entries = tokens.map(({ secret, scopes, name }) => ({
    ...{ name, scopes, usedAt: null as number | null },
    digest: Buffer.from(digest(secret), "latin1"),
    caller: callerWith(name, scopes),
  }));
  const presented = Buffer.alloc(digestChars);
  return {
    required: entries.length > 0,
    identify(authorization) {
      const secret = bearerSecret(authorization);
      if (secret === undefined) return undefined;
      // All digests have the same length, as timingSafeEqual requires, and comparing them does not show how much of a guess was right.
      presented.write(digest(secret), "latin1");
      let found: (typeof entries)[number] | undefined;
      for (const entry of entries) if (equal(entry.digest, presented)) found = entry;
      if (found === undefined) return undefined;
      found.usedAt = now();
      return found.caller;
    },
    uses: () => entries.map(({ name, scopes, usedAt }) => ({ name, scopes, usedAt })),
  };
}

/** Reads one token in the format above. `where` names its source for the message ("--token", "tokens.txt:3"), never its value. */
export function parseToken(text: string, where: string): Token {
  const fields = text.trim().split(":");
  if (fields.length > 3) throw badToken(`${where} has ${fields.length} parts`, "SECRET, SCOPES:SECRET or SCOPES:SECRET:NAME");
  const [scopeList, secret] = fields.length === 1 ? ["operator", fields[0] ?? ""] : [fields[0] ?? "", fields[1] ?? ""];
  const scopes = scopeList.split(",").map((scope) => scope.trim());
  if (!scopes.every(isTokenScope)) throw badToken(`${where} has an unknown scope`, "a comma list of worker, operator and read");
  if (secret.length < secretCharsMin || secret.length > secretCharsMax) {
    throw badToken(`${where} has a secret of ${secret.length} characters`, `${secretCharsMin} to ${secretCharsMax}`);
  }
  if (!secretPattern.test(secret))
    throw badToken(`${where} has a secret with other characters`, "A-Z a-z 0-9 - . _ ~ + / and = at the end");
  const name = fields[2] ?? `${scopes.join("-")}-${digest(secret).slice(0, 6)}`;
  if (!namePattern.test(name)) throw badToken(`${where} has an unusable name`, "1 to 64 of A-Z a-z 0-9 . _ @ -");
  return { secret, scopes, name };
}

/** Reads a token file, one token per line. */
export function readTokenFile(path: string): Token[] {
  let text: string;
  try {
    text = readNamedFile(path).toString();
  } catch (cause) {
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `The token file ${path} cannot be read: ${(cause as Error).message}.`, { cause });
  }
  if (text.length > tokenFileBytesMax) throw badToken(`The token file ${path} is too large`, `at most ${tokenFileBytesMax} bytes`);
  return text
    .split(/\r?\n/)
    .map((line, index) => ({ line: line.trim(), where: `${path}:${index + 1}` }))
    .filter(({ line }) => line !== "" && !line.startsWith("#"))
    .map(({ line, where }) => parseToken(line, where));
}

/** The secret of `Bearer SECRET`; the scheme is case-insensitive (RFC 9110 section 11.1). */
function bearerSecret(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization.length > secretCharsMax + 64) return undefined;
  const match = /^bearer +(\S+) *$/i.exec(authorization);
  return match?.[1];
}

/** A hexadecimal text takes 0.7 us. A separate buffer would take 2.5 us and cause garbage collection. */
function digest(secret: string): string {
  return hash("sha256", secret, "hex");
}

function isTokenScope(text: string): text is TokenScope {
  return tokenScopes.includes(text);
}

function badToken(what: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${what}; expected ${expected}.`, { detail: { field: "token", expected } });
}
