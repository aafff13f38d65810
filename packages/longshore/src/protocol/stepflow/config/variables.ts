// `${NAME}` and `${NAME:-default}` in the texts of a configuration stand for variables of the server's own environment. `$${` is a plain `${`.

import type { Environment } from "../../../environment.ts";
import { textOf } from "../../../file-fields.ts";
import type { Place } from "../../../file-place.ts";

const reference = /\$?\$\{([^}]*)\}/g;
const inside = /^([A-Za-z_]\w*)(?::-(.*))?$/s;

/** A text with its variables replaced. As in a shell, a variable that is empty counts as absent where there is a default. */
export function filledText(place: Place, expected: string, environment: Environment): string {
  return textOf(place, expected).replace(reference, (whole, body: string) => {
    if (whole.startsWith("$$")) return whole.slice(1);
    const [, name, fallback] = inside.exec(body) ?? [];
    if (name === undefined) throw place.refuse(`'${whole}' names no variable.`, "${NAME} or ${NAME:-default}; $${ is a plain ${");
    const value = environment[name];
    if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    if (fallback !== undefined) return fallback;
    throw place.refuse(`The variable ${name} is not set.`, `${name} in the environment of the server, or \${${name}:-default} here`);
  });
}
