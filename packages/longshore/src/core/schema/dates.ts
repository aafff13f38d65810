// Dates in JSON Schema. A date is sent as text in the form of RFC 3339. zod describes a date only with an option that leaves all
// inexpressible types open. This file sets the option, and refuses all other types that it would leave open.

/** The options that a schema library needs in addition to the draft; undefined when it needs none. */
export function libraryOptions(vendor: string, side: "input" | "output"): Record<string, unknown> | undefined {
  return vendor === "zod" ? { unrepresentable: "any", override: (node: ZodNode) => describe(node, side) } : undefined;
}

/** The fields of zod's override argument that are used here. */
interface ZodNode {
  readonly zodSchema: {
    readonly _zod: { readonly def: { readonly type: string; readonly coerce?: boolean; readonly values?: unknown[] } };
  };
  readonly jsonSchema: Record<string, unknown>;
}

const unsayable = new Set(["bigint", "symbol", "undefined", "void", "map", "set", "nan", "transform", "custom", "function", "promise"]);

function describe({ zodSchema, jsonSchema }: ZodNode, side: "input" | "output"): void {
  const { type, coerce, values } = zodSchema._zod.def;
  const literal = type === "literal" && values?.some((value) => value === undefined || typeof value === "bigint");
  // An input arrives as JSON, so a date that is not converted from text can never match.
  if (unsayable.has(type) || literal || (type === "date" && side === "input" && !coerce)) {
    throw new TypeError(`JSON Schema cannot describe this ${type}.`);
  }
  if (type === "date") Object.assign(jsonSchema, { type: "string", format: "date-time" });
}
