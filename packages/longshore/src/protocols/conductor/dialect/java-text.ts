import { isScalar, type Json } from "../../../core/json/json.ts";

/** A value as the reference writes it into texts: `{a=1, b=[x, null]}`. Used only where a text must equal the reference's. */
export function javaText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(javaText).join(", ")}]`;
  if (isScalar(value)) return String(value);
  return `{${Object.entries(value)
    .map(([key, inner]) => `${key}=${javaText(inner)}`)
    .join(", ")}}`;
}
