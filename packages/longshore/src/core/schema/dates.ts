// Dates in JSON Schema. A date travels as text in the form of RFC 3339, but zod describes no date at all unless it may leave open whatever
// it cannot express. So it may, and whatever else is then left open is refused here instead.

/** Options for a schema library besides the draft; undefined for libraries that need none. */
export function libraryOptions(vendor: string, side: "input" | "output"): Record<string, unknown> | undefined {
  return vendor === "zod" ? { unrepresentable: "any", override: (node: ZodNode) => describe(node, side) } : undefined;
}

/** The part of what zod hands to an override that is used here. */
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
  // A date that is not made from text never fits an input that came as JSON.
  if (unsayable.has(type) || literal || (type === "date" && side === "input" && !coerce)) {
    throw new TypeError(`JSON Schema cannot describe this ${type}.`);
  }
  if (type === "date") Object.assign(jsonSchema, { type: "string", format: "date-time" });
}
