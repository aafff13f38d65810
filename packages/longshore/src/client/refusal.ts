// The error that a program gets for an unsuccessful reply, or when there is no reply.

import { type ErrorCode, type ErrorDetail, errorCodes, LongshoreError } from "../core/errors.ts";

/** The server has refused a request. */
export class Refusal extends LongshoreError {
  /** The status code of the HTTP reply. */
  readonly status: number;

  constructor(code: ErrorCode, message: string, status: number, detail: ErrorDetail = {}) {
    super(code, message, { detail });
    this.status = status;
  }
}

/** How many characters of another program's reply an error quotes. */
const quotedCharsMax = 300;

export interface Asked {
  readonly origin: string;
  readonly token: string | undefined;
}

export function refusalOf(status: number, text: string, { origin, token }: Asked): LongshoreError {
  if (status === 401) return new Refusal("LONGSHORE_UNAUTHORIZED", unauthorized(origin, token), status);
  const problem = problemIn(text);
  if (problem !== undefined) {
    const { code, message, ...detail } = problem;
    const hint = status === 403 && code === "LONGSHORE_UNAUTHORIZED" ? " Use a token that allows more." : "";
    return new Refusal(code, `${message}${hint}`, status, detail);
  }
  const answer = `${origin} answered ${status}: ${text.slice(0, quotedCharsMax)}`;
  // A proxy replies so while the server behind it is not running.
  if (status >= 502 && status <= 504) return new Refusal("LONGSHORE_UNREACHABLE", answer, status);
  return new Refusal("LONGSHORE_BAD_CONFIG", `${answer}. Is that a Longshore server?`, status);
}

function unauthorized(origin: string, token: string | undefined): string {
  return token === undefined
    ? `${origin} requires a token: connect(url, { token }).`
    : `${origin} does not know the token. Check whether it is the token of this server.`;
}

type Problem = ErrorDetail & { code: ErrorCode; message: string };

/** The error in the format of our API; undefined for any other text. */
function problemIn(text: string): Problem | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: Partial<Problem> };
    if (typeof error?.message !== "string") return undefined;
    // A newer server may have codes that this version does not know.
    const code = errorCodes.find((known) => known === error.code) ?? "LONGSHORE_INTERNAL";
    return { ...error, message: error.message, code };
  } catch {
    // Not JSON, so not from our API: the caller quotes it.
    return undefined;
  }
}

export function unreachable(origin: string, cause: unknown): LongshoreError {
  if (cause instanceof LongshoreError) return cause;
  const why = reasonOf(cause);
  if (/CERT|ALTNAME|SIGNATURE/.test(why))
    return new LongshoreError("LONGSHORE_BAD_CONFIG", `The certificate of ${origin} is not trusted (${why}).`, { cause });
  return new LongshoreError("LONGSHORE_UNREACHABLE", `No server answers at ${origin} (${why}).`, { cause });
}

/** The reason is in the cause of the error of `fetch`, or deeper in the chain of causes. Browsers give no reason. */
function reasonOf(error: unknown): string {
  let reason = error instanceof Error ? error.message : String(error);
  for (let link = error; link instanceof Error; link = link.cause) reason = (link as { code?: string }).code ?? link.message;
  return reason;
}
