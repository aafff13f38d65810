// Replaces `${NAME}` and `${NAME:-default}` in the texts of a configuration by variables of the server's environment. `$${` is a literal
// `${`.

import type { Environment } from "../../../../core/environment.ts";
import { textOf } from "../../../../core/file-fields.ts";
import type { Place } from "../../../../core/file-place.ts";

const inside = /^([A-Za-z_]\w*)(?::-(.*))?$/s;

/** The text with its variables replaced. As in a shell, an empty variable counts as absent when there is a default. */
export function filledText(place: Place, expected: string, environment: Environment): string {
  return replaced(textOf(place, expected), (whole, body) => {
    if (whole.startsWith("$$")) return whole.slice(1);
    const [, name, fallback] = inside.exec(body) ?? [];
    if (name === undefined) throw place.refuse(`'${whole}' names no variable.`, "${NAME} or ${NAME:-default}; $${ is a plain ${");
    const value = environment[name];
    if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    if (fallback !== undefined) return fallback;
    throw place.refuse(`The variable ${name} is not set.`, `${name} in the environment of the server, or \${${name}:-default} here`);
  });
}

/** Replaces each `${...}`, including a dollar sign before it. One pass, even if a brace is not closed. */
function replaced(text: string, replace: (whole: string, body: string) => string): string {
  let done = "";
  let from = 0;
  for (let at = text.indexOf("${"); at !== -1; at = text.indexOf("${", from)) {
    const close = text.indexOf("}", at);
    if (close === -1) break;
    const start = at > from && text[at - 1] === "$" ? at - 1 : at;
    done += text.slice(from, start) + replace(text.slice(start, close + 1), text.slice(at + 2, close));
    from = close + 1;
  }
  return done + text.slice(from);
}
