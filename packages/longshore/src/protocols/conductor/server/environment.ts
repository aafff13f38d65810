// The environment variables with Conductor's prefixes: secrets, and settings for workflows. Both are read-only.

import type { Environment as Variables } from "../../../core/environment.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { json, noSecret, nothing, text } from "./replies.ts";

const secretPrefix = "CONDUCTOR_SECRET_";
const settingPrefix = "CONDUCTOR_ENV_";

export class Environment {
  readonly #variables: Variables;

  constructor(variables: Variables) {
    this.#variables = variables;
  }

  secrets = (): HttpReply => json(this.#names(secretPrefix));

  /** The real server shows the last characters of a long value. Here no part of a value is shown to callers that may not read it. */
  secretsWithParts = (): HttpReply => json(this.#names(secretPrefix).map((name) => ({ name, partial: "..." })));

  hasSecret = (request: HttpRequest): HttpReply => json(this.#secret(request) !== undefined);

  secret = (request: HttpRequest): HttpReply => {
    const value = this.#secret(request);
    return value === undefined ? noSecret : text(value);
  };

  /** Both changes are refused, with the status and the text of the real server. */
  changeSecret = (): HttpReply => ({ ...text("env-backed secrets are read-only"), status: 501 });

  settings = (): HttpReply =>
    json(this.#names(settingPrefix).map((name) => ({ name, value: this.#variables[`${settingPrefix}${name}`] as string })));

  setting = (request: HttpRequest): HttpReply => {
    const value = this.#variables[`${settingPrefix}${request.params.name}`];
    return value === undefined ? nothing : text(value);
  };

  #secret({ params }: HttpRequest): string | undefined {
    return this.#variables[`${secretPrefix}${params.name}`];
  }

  #names(prefix: string): string[] {
    const named = Object.keys(this.#variables).filter((name) => name.startsWith(prefix));
    return named.map((name) => name.slice(prefix.length)).sort();
  }
}
