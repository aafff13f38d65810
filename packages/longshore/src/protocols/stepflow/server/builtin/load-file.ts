// load_file: reads a file below the one folder that the operator has configured. Without that setting it reads nothing. It reads no file
// outside the folder, neither with `..` nor through a symbolic link. It reads no file with secrets of the server.

import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { toError } from "../../../../core/errors.ts";
import type { Json } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import { toJson } from "../../../../core/json/to-json.ts";
import { payloadRequestBytes } from "../../../../core/payload-size.ts";
import { type ComponentWork, StepFailure } from "../lane.ts";
import { type Component, failed, invalid, objectSchema, optionalText, textIn } from "./component.ts";
import { parseYaml } from "./yaml-thread.ts";

const formats = ["json", "yaml", "text"] as const;
type Format = (typeof formats)[number];

/** A file becomes the output of a step, which is stored with its run. */
const fileBytesMax = payloadRequestBytes;

export interface FlowFiles {
  readonly folder: string;
  /** Folders and files that are never read, even inside the folder or through a link in it. */
  readonly hidden: readonly string[];
}

export function loadFile(files: FlowFiles | null): Component {
  return {
    path: "/load_file",
    description: "Reads a file (JSON, YAML or text) below the folder that the server has for such files.",
    inputSchema: objectSchema(
      "LoadFileInput",
      {
        path: { type: "string", description: "The path, relative to that folder." },
        format: { enum: [...formats], description: "The format; when absent, the ending of the file decides." },
      },
      ["path"],
    ),
    outputSchema: objectSchema(
      "LoadFileOutput",
      {
        data: { description: "The content of the file." },
        metadata: objectSchema(
          "FileMetadata",
          { resolved_path: { type: "string" }, size_bytes: { type: "integer" }, format: { enum: [...formats] } },
          ["resolved_path", "size_bytes", "format"],
        ),
      },
      ["data", "metadata"],
    ),
    async perform(call) {
      const wanted = textIn(call, "path");
      const format = formatOf(call, wanted);
      if (files === null) throw failed(call, off);
      const place = await inside(call, files, wanted);
      const content = await read(call, place.path, wanted);
      const metadata = { resolved_path: place.shown, size_bytes: content.byteLength, format };
      return { data: await parsed(call, content.toString("utf8"), format, wanted), metadata };
    },
  };
}

const off = "this server reads no files for flows; start it with --stepflow-files FOLDER to name a folder that every flow may read";

function formatOf(call: ComponentWork, path: string): Format {
  const given = optionalText(call, "format");
  if (given === undefined) return /\.json$/i.test(path) ? "json" : /\.ya?ml$/i.test(path) ? "yaml" : "text";
  const known = formats.find((format) => format === given);
  if (known === undefined) throw invalid(call, `format is ${JSON.stringify(given)}, expected one of ${formats.join(", ")}`);
  return known;
}

/**
 * The real path of a file, with links resolved. Only for a path inside the folder does the error report that the file is missing or
 * unreadable.
 */
async function inside(call: ComponentWork, { folder, hidden }: FlowFiles, wanted: string): Promise<{ path: string; shown: string }> {
  const outside = () => invalid(call, `path ${JSON.stringify(wanted)} leads out of the folder for flows`);
  if (wanted.includes("\0")) throw invalid(call, "path has a NUL character in it");
  const root = await realpath(folder).catch(() => resolve(folder));
  const named = resolve(root, wanted);
  if (!isBelow(root, named)) throw outside();
  let path: string;
  try {
    path = await realpath(named);
  } catch (error) {
    throw cannotRead(call, wanted, error);
  }
  if (!isBelow(root, path)) throw outside();
  for (const secret of hidden) {
    const real = await realpath(secret).catch(() => resolve(secret));
    if (path === real || isBelow(real, path)) throw invalid(call, `path ${JSON.stringify(wanted)} leads to private data of the server`);
  }
  return { path, shown: relative(root, named) };
}

/** Both must be real paths. */
export function isBelow(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Does not follow a link that has replaced the file meanwhile, and does not block on a pipe. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

async function read(call: ComponentWork, path: string, wanted: string): Promise<Buffer> {
  try {
    const file = await open(path, flags);
    try {
      const found = await file.stat();
      if (!found.isFile()) throw invalid(call, `${JSON.stringify(wanted)} is not a file`);
      if (found.size > fileBytesMax) {
        throw invalid(call, `${JSON.stringify(wanted)} has ${found.size} bytes, expected at most ${fileBytesMax}`);
      }
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    throw error instanceof StepFailure ? error : cannotRead(call, wanted, error);
  }
}

async function parsed(call: ComponentWork, text: string, format: Format, wanted: string): Promise<Json> {
  if (format === "text") return text;
  try {
    if (format === "json") return parseExact(text) as Json;
    return toJson(await parseYaml(text));
  } catch (error) {
    throw failed(call, `${JSON.stringify(wanted)} is not valid ${format}: ${toError(error).message}`);
  }
}

/** The system's error message contains the full path on the server, so only its code is shown. */
function cannotRead(call: ComponentWork, wanted: string, error: unknown): Error {
  const code = String((error as { code?: unknown }).code ?? "");
  const why = code === "ENOENT" ? "there is no such file" : `it cannot be read (${code})`;
  return failed(call, `${JSON.stringify(wanted)}: ${why}`);
}
