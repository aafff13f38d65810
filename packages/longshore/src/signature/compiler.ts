// Finds the TypeScript compiler of the project whose files are read. It is an optional peer: only reading signatures needs it.
// TypeScript 7 is a native program that offers no functions to call, so beside it version 6 must be installed under a second name.

import { createRequire } from "node:module";
import { resolve } from "node:path";
import type * as TypeScript from "typescript-6";
import { LongshoreError } from "../core/errors.ts";

export type Compiler = typeof TypeScript;

/** Packages that may hold the compiler, in the order in which they are tried. The second is the name that our message proposes. */
const packages = ["typescript", "typescript-6"] as const;

const install = "npm install --save-dev typescript-6@npm:typescript@6";

/** `file` is the one to be read: its project's own compiler understands it best. `places` are the modules to look from. */
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
      // Not installed there; the next place may have it.
    }
  }
  return undefined;
}
