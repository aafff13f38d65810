// The credentials in the request of an HTTP task. The stored input has them, because the request is sent from it, also after a crash. What is
// shown of the task has `***` instead.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";

/** Headers of a request that are credentials. */
const credentialHeaders: ReadonlySet<string> = new Set(["authorization", "cookie", "proxy-authorization", "x-api-key"]);
export const hidden = "***";

/** Nothing but a reference, perhaps behind the name of a scheme: it names a secret and does not contain it. */
const reference = /^(?:[\w-]+ +)?\$\{[^{}]*\}$/;
const anyName = new RegExp(`"(?:${[...credentialHeaders].join("|")})"`, "i");

/** Whether a JSON text may contain credentials. */
export function namesCredential(json: string): boolean {
  return anyName.test(json);
}

/** The input of an HTTP task for display. JSON texts. */
export function hideCredentialsJson(json: string): string {
  return namesCredential(json) ? writeExact(hideCredentials(parseExact(json) as Json)) : json;
}

/** The same for a value. The fields of the request are in the input itself, or in its field `http_request`. */
export function hideCredentials<Input extends Json>(input: Input): Input {
  if (!isObject(input)) return input;
  const { headers, http_request: request } = input as JsonObject;
  return {
    ...(input as JsonObject),
    ...(isObject(headers) ? { headers: hideValues(headers as JsonObject) } : {}),
    ...(isObject(request) ? { http_request: hideCredentials(request) } : {}),
  } as unknown as Input;
}

function hideValues(headers: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isCredential(name, value) ? hidden : value]));
}

function isCredential(name: string, value: Json): boolean {
  return credentialHeaders.has(name.toLowerCase()) && value !== null && !(typeof value === "string" && reference.test(value));
}
