// Finds the modules that `importModules` names. Programs of the SDK name them without an extension, relative to the working directory or to
// their main file.

import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LongshoreError } from "../../../../core/errors.ts";

/** Tried in this order after the name. */
const endings = ["", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", "/index.js", "/index.mjs", "/index.ts"];

/** The file of the module. Throws LONGSHORE_BAD_CONFIG with the places that were searched. */
export function findModule(name: string): string {
  if (name.startsWith("file:")) return fileURLToPath(name);
  const places = [process.cwd(), ...(process.argv[1] === undefined ? [] : [dirname(process.argv[1])])];
  if (/^(\.{1,2}([\\/]|$)|[\\/]|[A-Za-z]:)/.test(name)) {
    for (const place of places) {
      for (const ending of endings) {
        const path = resolve(place, name + ending);
        if (existsSync(path) && statSync(path).isFile()) return path;
      }
    }
  } else {
    for (const place of places) {
      try {
        return createRequire(resolve(place, "package.json")).resolve(name);
      } catch {
        // Not installed there; the next place may have it.
      }
    }
  }
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `importModules names ${name}, which was not found from ${places.join(" or ")}.`, {
    detail: { field: "importModules" },
  });
}
