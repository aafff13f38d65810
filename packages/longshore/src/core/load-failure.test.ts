import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { loadFailure } from "./load-failure.ts";

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-load-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "lib"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** An error as Node throws it, with stack frames of Node only. */
function errorOf(name: string, message: string, stack: string): Error {
  const error = new Error(message);
  error.name = name;
  error.stack = stack;
  return error;
}

const insideNode = "    at compileSourceTextModule (node:internal/modules/esm/utils:346:16)";

it("a syntax error of a module is found in the file, or in a file that it imports", () => {
  const folder = folderWith({
    "app.mjs": 'import { x } from "./lib/helper.mjs";\nexport const a = x;\n',
    "lib/helper.mjs": "export const y = 1;\nexport const x = ;\n",
  });
  const error = errorOf("SyntaxError", "Unexpected token ';'", `SyntaxError: Unexpected token ';'\n${insideNode}`);
  expect(loadFailure(join(folder, "app.mjs"), error)).toBe(
    `${folder}/app.mjs could not be loaded.\n${folder}/lib/helper.mjs:2:18: SyntaxError: Unexpected token ';'\nexport const x = ;\n                 ^`,
  );
});

it("a place that Node prints above the message is kept, without Node's own stack frames", () => {
  const stack = `file:///home/ada/app.mjs:1\nimport { tsk } from "longshore";\n         ^^^\nSyntaxError: The requested module 'longshore' does not provide an export named 'tsk'\n${insideNode}`;
  expect(loadFailure("app.mjs", errorOf("SyntaxError", "The requested module", stack))).toBe(
    "app.mjs could not be loaded.\n/home/ada/app.mjs:1:10: SyntaxError: The requested module 'longshore' does not provide an export named 'tsk'\n" +
      'import { tsk } from "longshore";\n         ^^^',
  );
});

it("TypeScript that Node strips itself names its place with lines around it", () => {
  const stack = `file:///home/ada/app.ts:3\nexport const a = 1;\n  return x +;\n            ^\n});\n\nSyntaxError [ERR_INVALID_TYPESCRIPT_SYNTAX]: Expression expected\n${insideNode}`;
  expect(loadFailure("app.ts", errorOf("SyntaxError", "Expression expected", stack))).toBe(
    "app.ts could not be loaded.\n/home/ada/app.ts:3:13: SyntaxError: Expression expected\n  return x +;\n            ^",
  );
});

it("TypeScript that tsx compiles names its place in the message", () => {
  const folder = folderWith({ "app.ts": "const a = 1;\nreturn +;\n" });
  const message = `Transform failed with 1 error:\n${folder}/app.ts:2:8: ERROR: Unexpected ";"`;
  const frames = "    at failureErrorWithLog (/home/ada/node_modules/esbuild/lib/main.js:1752:15)";
  expect(loadFailure("app.ts", errorOf("Error", message, `Error: ${message}\n${frames}`))).toBe(
    `app.ts could not be loaded.\n${folder}/app.ts:2:9: SyntaxError: Unexpected ";"\nreturn +;\n        ^`,
  );
});

it("an error that the file throws keeps the stack frames of the user's files", () => {
  const frames = [
    "    at start (file:///home/ada/lib/db.mjs:4:9)",
    "    at file:///home/ada/app.mjs:3:6",
    "    at connect (/home/ada/node_modules/pg/lib/client.js:10:3)",
    "    at ModuleJob.run (node:internal/modules/esm/module_job:325:25)",
  ];
  expect(loadFailure("app.mjs", errorOf("TypeError", "no address", `TypeError: no address\n${frames.join("\n")}`))).toBe(
    `app.mjs could not be loaded: TypeError: no address\n${frames[0]}\n${frames[1]}`,
  );
});

it("a missing package is reported in one line", () => {
  const message = "Cannot find package 'pg' imported from /home/ada/app.mjs";
  expect(loadFailure("app.mjs", errorOf("Error", message, `Error [ERR_MODULE_NOT_FOUND]: ${message}\n${insideNode}`))).toBe(
    `app.mjs could not be loaded: Error: ${message}`,
  );
});
