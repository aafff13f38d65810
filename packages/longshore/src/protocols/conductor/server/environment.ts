// The environment variables with Conductor's prefixes: names of secrets, and settings for workflows.

import type { Environment as Variables } from "../../../core/environment.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { json, nothing, text } from "./replies.ts";

const secretPrefix = "CONDUCTOR_SECRET_";
const settingPrefix = "CONDUCTOR_ENV_";

export class Environment {
  readonly #variables: Variables;

  constructor(variables: Variables) {
    this.#variables = variables;
  }

  secrets = (): HttpReply => json(this.#names(secretPrefix));

  settings = (): HttpReply =>
    json(this.#names(settingPrefix).map((name) => ({ name, value: this.#variables[`${settingPrefix}${name}`] as string })));

  setting = (request: HttpRequest): HttpReply => {
    const value = this.#variables[`${settingPrefix}${request.params.name}`];
    return value === undefined ? nothing : text(value);
  };

  #names(prefix: string): string[] {
    const named = Object.keys(this.#variables).filter((name) => name.startsWith(prefix));
    return named.map((name) => name.slice(prefix.length)).sort();
  }
}
