// `longshore schema`: the JSON Schemas of tasks, read from the signatures of their handlers.

import { writeFileSync } from "node:fs";
import { Command } from "commander";
import type { JsonSchema } from "../core/schema/json-schema.ts";
import type { SignatureSchemas } from "../signature/signatures.ts";
import { CommandFailure, exitFailed } from "./failure.ts";
import { withExamples, withJson } from "./options.ts";
import { jsonText } from "./print-json.ts";

interface SchemaFlags {
  json?: boolean;
  strict?: boolean;
  out?: string;
}

const notes = `A file makes tasks with task("name", handler). In a file that makes none, each exported function is a handler, and its task has the same name. The file is read, not run. Needs the compiler of TypeScript 6: npm install --save-dev typescript-6@npm:typescript@6
Exit code 1 when the input or the output of a task has no schema; the reason is printed.`;

export function schemaCommand(): Command {
  const command = new Command("schema")
    .description("read the JSON Schemas of tasks from the types of their handlers")
    .argument("<file>", "a TypeScript or JavaScript module");
  withJson(command)
    .option("--strict", "refuse fields that the types do not name")
    .option("--out <file>", "write the schemas as JSON into a file")
    .action(schema);
  return withExamples(
    command,
    [
      ["longshore schema tasks.ts", "the input and output fields of each task"],
      ["longshore schema tasks.ts --out tasks.schema.json", "for the schemas option of task()"],
      ["longshore schema tasks.ts --strict --json", "for a script"],
    ],
    notes,
  );
}

async function schema(file: string, flags: SchemaFlags): Promise<void> {
  const { readSignatures } = await import("../signature/signatures.ts");
  const found = readSignatures(file, { strict: flags.strict ?? false });
  if (found.length === 0) {
    throw new CommandFailure(`${file} has neither a task nor an exported function. Write \`export const greet = task("greet", ...)\`.`);
  }
  const document = jsonText(Object.fromEntries(found.map(({ task, schemas }) => [task, schemas])), 2);
  if (flags.out !== undefined) write(flags.out, document);
  process.stdout.write(flags.json ? `${document}\n` : `${found.flatMap(asText).join("\n")}\n`);
  const missing = found.flatMap(({ task, line, missing }) =>
    missing.map(({ side, why }) => `${file}:${line}: ${task} has no ${side} schema: ${why}`),
  );
  for (const line of missing) process.stderr.write(`${line}\n`);
  if (missing.length > 0) throw new CommandFailure("", exitFailed);
}

function write(path: string, document: string): void {
  try {
    writeFileSync(path, `${document}\n`);
  } catch (cause) {
    throw new CommandFailure(`${path} cannot be written: ${(cause as Error).message}.`, undefined, { cause });
  }
}

function asText({ task, schemas }: SignatureSchemas): string[] {
  return [task, `  input   ${fieldsOf(schemas.input)}`, `  output  ${fieldsOf(schemas.output)}`];
}

/** The names of the fields, with a question mark after optional ones. */
function fieldsOf(schema: JsonSchema | undefined): string {
  if (schema === undefined) return "-";
  if (schema.properties === undefined) return typeof schema.type === "string" ? schema.type : "several types";
  const required = new Set(schema.required as string[]);
  const names = Object.keys(schema.properties as object).map((name) => (required.has(name) ? name : `${name}?`));
  return names.length === 0 ? "no fields" : names.join(", ");
}
