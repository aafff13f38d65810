// `${NAME}` and `${NAME:-default}` in the texts of a configuration are replaced by variables of the server's own environment. `$${` is a
// plain `${`.

import type { Environment } from "../../../../core/environment.ts";
import { textOf } from "../../../../core/file-fields.ts";
import type { Place } from "../../../../core/file-place.ts";

const inside = /^([A-Za-z_]\w*)(?::-(.*))?$/s;

/** A text with its variables replaced. As in a shell, a variable that is empty counts as absent where there is a default. */
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

/** Each `${...}` replaced, with the dollar sign before it where there is one. In one pass, whatever is left open. */
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
