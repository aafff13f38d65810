// The client of the API: JSON over fetch with the token of this tab. The token is in memory and in sessionStorage, and never in an address
// that is sent.

import { signal } from "@preact/signals";
import { exactJson } from "./exact-json.ts";
import { apiUrl, exported, serverUrl } from "./place.ts";

const storageKey = "longshore.token";

/** True while the server asks for a token that this tab does not have. */
export const needsToken = signal(false);
/** Why the last token was refused; empty when none was. */
export const tokenProblem = signal("");
/** False while the server does not answer. */
export const isReachable = signal(true);

let token = takeFromFragment() ?? sessionStorage.getItem(storageKey) ?? "";
let signedIn: (() => void)[] = [];

/**
 * `longshore dev` prints `/ui#token=...`. The browser does not send a fragment to a server, and this code removes it from the address at
 * once.
 */
function takeFromFragment(): string | undefined {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (found?.[1] === undefined) return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  const given = decodeURIComponent(found[1]);
  sessionStorage.setItem(storageKey, given);
  return given;
}

export function signIn(given: string): void {
  token = given.trim();
  sessionStorage.setItem(storageKey, token);
  tokenProblem.value = "";
  needsToken.value = false;
  const waiting = signedIn;
  signedIn = [];
  for (const go of waiting) go();
}

export function signOut(): void {
  token = "";
  sessionStorage.removeItem(storageKey);
  needsToken.value = true;
}

export class ApiError extends Error {
  readonly status: number;
  readonly field: string | undefined;

  constructor(status: number, message: string, field?: string) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer of a path below the API, such as `/runs`, or of the server with `root:/health`. */
export async function request(path: string, { method = "GET", body, signal: gone, headers }: Call = {}): Promise<Response> {
  const url = path.startsWith("root:") ? serverUrl + path.slice(5) : apiUrl + path;
  for (;;) {
    const response = await reach(url, {
      method,
      signal: gone ?? null,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
        ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    if (response.status !== 401) return response;
    tokenProblem.value = token === "" ? "" : "The server does not know this token.";
    needsToken.value = true;
    await new Promise<void>((resolve) => signedIn.push(resolve));
    gone?.throwIfAborted();
  }
}

async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, { ...init, cache: "no-store" });
    isReachable.value = true;
    return response;
  } catch (error) {
    if ((error as Error).name !== "AbortError") isReachable.value = false;
    throw (error as Error).name === "AbortError" ? error : new ApiError(0, "The server does not answer.");
  }
}

/** Reads JSON. Throws ApiError for every other status than 2xx. */
export async function call<Answer>(path: string, options: Call = {}): Promise<Answer> {
  if (exported !== null) return fromExport(path) as Answer;
  const response = await request(path, options);
  const text = await response.text();
  if (response.ok) return (text === "" ? undefined : exactJson(text)) as Answer;
  throw problemOf(response.status, text);
}

function problemOf(status: number, text: string): ApiError {
  try {
    const { error } = JSON.parse(text) as { error: { message: string; field?: string } };
    return new ApiError(status, error.message, error.field);
  } catch {
    // A proxy before the server may answer with its own page.
    return new ApiError(status, `The server answered with status ${status}.`);
  }
}

function fromExport(path: string): unknown {
  if (exported !== null && path in exported.answers) return exported.answers[path];
  throw new ApiError(404, "This is not part of the exported run.");
}

/** A query without its empty values. */
export function query(values: Readonly<Record<string, string | number | boolean | null | undefined>>): string {
  const given = Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === null || value === "" ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}
