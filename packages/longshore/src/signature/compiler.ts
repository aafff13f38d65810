// Finds the TypeScript compiler of the project whose files are read. It is an optional peer dependency: only reading signatures needs it.
// TypeScript 7 is a native program without a JavaScript API, so version 6 must be installed next to it under a second name.

import { createRequire } from "node:module";
import { resolve } from "node:path";
import type * as TypeScript from "typescript-6";
import { LongshoreError } from "../core/errors.ts";

export type Compiler = typeof TypeScript;

/**
 * The packages that may contain the compiler, in the order in which they are tried. The second is the name that the error message proposes.
 */
const packages = ["typescript", "typescript-6"] as const;

const install = "npm install --save-dev typescript-6@npm:typescript@6";

/** `file` is the file to read: the compiler of its own project comes first. `places` are the modules to search from. */
export function loadCompiler(file: string, places: readonly string[] = [file, resolve("package.json"), import.meta.url]): Compiler {
  const unusable: string[] = [];
  for (const name of packages) {
    const found = load(name, places);
    if (found === undefined) continue;
    if (typeof found.createProgram === "function") return found as Compiler;
    unusable.push(`${name} ${found.version ?? ""}`.trim());
  }
  const seen = unusable.length === 0 ? "it is not installed" : `${unusable.join(", ")} has no compiler that a program can call`;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `Reading signatures needs the compiler of TypeScript 6, and ${seen}. Run \`${install}\`.`,
  );
}

function load(name: string, places: readonly string[]): Partial<Compiler> | undefined {
  for (const place of places) {
    try {
      return createRequire(place)(name) as Partial<Compiler>;
    } catch {
      // Not installed there; try the next place.
    }
  }
  return undefined;
}
