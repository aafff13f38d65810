// Hides the secrets of an HTTP task in what is stored of its request and response. The called server may return what it was sent, such as the
// address in the text of an error.

import { isScalar, type Json } from "../../../../core/json/json.ts";
import { hidden } from "../../dialect/credentials.ts";

/** Shorter texts are easy to guess, and occur in many responses by chance. */
const charsMin = 6;

/** Returns a function that replaces the values by `***`, also in the forms that they have in addresses, names of hosts and JSON. */
export function hiding(values: readonly Json[]): (text: string) => string {
  const forms = values
    .flatMap(textsIn)
    .filter((text) => text.length >= charsMin)
    .flatMap(formsOf);
  // A longer form comes first, because a shorter one may be a part of it.
  const ordered = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return (text) => ordered.reduce((left, form) => left.replaceAll(form, hidden), text);
}

function textsIn(value: Json): string[] {
  return isScalar(value) ? [String(value)] : Object.values(value).flatMap(textsIn);
}

function formsOf(text: string): string[] {
  const valid = text.toWellFormed();
  return [text, text.toLowerCase(), JSON.stringify(text).slice(1, -1), encodeURI(valid), encodeURIComponent(valid)];
}
