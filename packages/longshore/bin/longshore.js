#!/usr/bin/env node
// The command that npm links. Apart from what is built, because npm links only what is there while it installs, and in the repository
// the build comes later.

import { existsSync } from "node:fs";

const program = new URL("../dist/cli/main.js", import.meta.url);

if (existsSync(program)) await import(program.href);
else {
  process.stderr.write("longshore: it has not been built yet. Run `npm run build` in the repository first.\n");
  process.exitCode = 2;
}
