// Takes secrets out of the data of an export: values under given names or paths, and texts that look like keys. A value that is taken out
// disappears everywhere in the file, also from logs and errors that repeat it.

export const namesDefault = "password, passwd, secret, token, authorization, api_key, apikey, cookie, credential, private_key";

const mark = "[left out]";
/** Shorter texts are also parts of other words, so only the value itself is taken out. */
const repeatedCharsMin = 6;

/** Texts that are keys by their form: web tokens, private keys, keys of clouds and of chats. */
const shapes: readonly RegExp[] = [
  /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/,
  /-----BEGIN [A-Z ]+-----/,
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
  /\bxox[abprs]-[\w-]{10,}/,
  /\bgh[pousr]_\w{20,}/,
];

export interface Redacted {
  readonly json: string;
  /** How many different values were taken out. */
  readonly count: number;
}

/**
 * `names`: parts of the names of members, such as `token`, or paths such as `customer.card`, with commas between them; upper and lower case are
 * the same. Members of the API itself are not data, and stay.
 */
export function redact(value: unknown, names: string): Redacted {
  const wanted = names
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const taken = new Set<string>();
  let json = JSON.stringify(value, (_key, member: unknown) => member);
  const cleaned = clean(JSON.parse(json), [], false, wanted, taken);
  json = JSON.stringify(cleaned);
  // The longest first: one secret may begin with another.
  for (const text of [...taken].sort((one, other) => other.length - one.length)) {
    if (text.length >= repeatedCharsMin) json = json.replaceAll(JSON.stringify(text).slice(1, -1), mark);
  }
  return { json, count: taken.size };
}

/** The members of the answers of the API whose values are data of the run. */
const dataOf = new Set(["input", "output", "variables", "value"]);

function clean(value: unknown, path: readonly string[], isData: boolean, names: readonly string[], taken: Set<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => clean(each, path, isData, names, taken));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        const inside = isData ? [...path, name.toLowerCase()] : [];
        if (isData && isNamed(inside, names)) {
          collect(member, taken);
          return [name, mark];
        }
        return [name, clean(member, inside, isData || dataOf.has(name), names, taken)];
      }),
    );
  }
  if (isData && typeof value === "string" && shapes.some((shape) => shape.test(value))) {
    taken.add(value);
    return mark;
  }
  return value;
}

function isNamed(path: readonly string[], names: readonly string[]): boolean {
  const whole = path.join(".");
  return names.some((name) => (name.includes(".") ? whole === name || whole.endsWith(`.${name}`) : (path.at(-1) ?? "").includes(name)));
}

function collect(value: unknown, taken: Set<string>): void {
  if (typeof value === "object" && value !== null) for (const each of Object.values(value)) collect(each, taken);
  else if (typeof value === "string" || typeof value === "number") taken.add(String(value));
}
