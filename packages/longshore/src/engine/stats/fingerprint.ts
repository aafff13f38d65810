// Removes numbers, ids, quoted values and paths from the text of an error, so that errors with the same cause form one group.

/** Enough to distinguish errors; the rest is mostly a stack. */
const charsMax = 200;
const quotes = "\"'`";
const hex = /^[0-9a-f-]{8,}$/i;
/** One of our ids, or another id of letters and digits. */
const id = /^[0-9A-Za-z_-]{20,}$/;

/** Made of the first line that has a text. */
export function fingerprint(error: string): string {
  const line = firstLine(error);
  return withoutQuoted(line).split(" ").map(word).join(" ");
}

/** The first line of an error, shortened. */
export function firstLine(error: string): string {
  const text = error.trimStart();
  const end = text.indexOf("\n");
  return text.slice(0, end < 0 ? charsMax : Math.min(end, charsMax)).trimEnd();
}

function withoutQuoted(text: string): string {
  let out = "";
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string;
    const end = quotes.includes(char) && !isLetter(text[at - 1]) ? text.indexOf(char, at + 1) : -1;
    if (end < 0) out += char;
    else {
      out += `${char}…${char}`;
      at = end;
    }
  }
  return out;
}

/** An apostrophe inside a word is not a quote. */
function isLetter(char: string | undefined): boolean {
  return char !== undefined && /[a-z]/i.test(char);
}

function word(text: string): string {
  const [start, end] = bare(text);
  const core = text.slice(start, end);
  const common = core.includes("/") || core.includes("\\") ? "…/" : hasDigit(core) ? withoutNumbers(core) : core;
  return text.slice(0, start) + common + text.slice(end);
}

/** The part between punctuation. */
function bare(text: string): [start: number, end: number] {
  let start = 0;
  let end = text.length;
  while (start < end && "([{<,;:.!?".includes(text[start] as string)) start++;
  while (end > start && ")]}>,;:.!?".includes(text[end - 1] as string)) end--;
  return [start, end];
}

function hasDigit(text: string): boolean {
  return /\d/.test(text);
}

function withoutNumbers(text: string): string {
  return hex.test(text) || id.test(text) ? "#" : text.replaceAll(/\d+/g, "#");
}
