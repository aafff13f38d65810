// A definition file in any of the formats of the protocols.

import { readFile } from "../core/file-place.ts";
import { protocols } from "../protocols/index.ts";
import type { DefinitionFile } from "../protocols/server-half.ts";

/** `file` is the file's name, which gives the definition its id. Throws LONGSHORE_BAD_DEFINITION with line and column. */
export type ParseDefinition = (text: string, file: string) => DefinitionFile;

/** Loads the formats. */
export async function definitionParser(): Promise<ParseDefinition> {
  const [first, ...others] = await Promise.all(protocols.flatMap(({ format }) => (format === undefined ? [] : [format.load()])));
  return (text, file) => {
    const read = readFile(text, { json: file.endsWith(".json"), code: "LONGSHORE_BAD_DEFINITION" });
    if (first === undefined)
      throw read.root.refuse("This server reads no definition files.", "a server with a protocol that has such files");
    const keys = read.root.entries().map(({ key }) => key);
    // When no format accepts the file, the first format refuses it, with the place of the mistake.
    const format = [first, ...others].find(({ accepts }) => accepts(keys)) ?? first;
    return { schedules: [], events: [], ...format.parse(read, file), dialect: format.dialect };
  };
}
