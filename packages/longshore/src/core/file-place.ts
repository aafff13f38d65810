// One value of a file that a person wrote, together with its position. Files are read through these values, so that every error and every
// warning can name line and column. One parser reads YAML and JSON: JSON is YAML.

import { Composer, type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node } from "yaml";
import { type ErrorCode, LongshoreError } from "./errors.ts";
import { type Json, jsonDepthMax } from "./json/json.ts";
import { findJsonFault, type JsonPath, pathText } from "./json/json-position.ts";
import { ShallowParser } from "./yaml-nesting.ts";

/** A larger file is probably generated; the HTTP API accepts the same content. */
const fileCharsMax = 2_097_152;
/** How many values aliases may expand to. People need fewer, and an attack needs more. */
const aliasesMax = 1_000;

/** The path of a value, and where it begins in its file. */
export interface Position {
  field: string;
  line: number;
  column: number;
}

export interface Warning extends Position {
  message: string;
}

export type Kind = "map" | "list" | "text" | "number" | "boolean" | "null" | "other";

/** The error codes that reading a file can have. */
export type FileErrorCode = Extract<ErrorCode, "LONGSHORE_BAD_DEFINITION" | "LONGSHORE_BAD_CONFIG">;

/** The content of a file, and its warnings. */
export interface ReadFile {
  root: Place;
  warnings: Warning[];
}

/** The id that a file name gives to its content: `flows/ci.yml` is `ci`. */
export function fileId(file: string | undefined): string | undefined {
  const base = file
    ?.split(/[\\/]/)
    .at(-1)
    ?.replace(/\.(ya?ml|json)$/, "");
  return base === undefined || base === "" ? undefined : base;
}

/** Reads a whole file. With `json`, only JSON's own grammar is accepted. */
export function readFile(text: string, { json, code }: { json: boolean; code: FileErrorCode }): ReadFile {
  if (text.length > fileCharsMax)
    throw bad(code, `The file has ${text.length} characters.`, { field: "", line: 1, column: 1, expected: `at most ${fileCharsMax}` });
  const fault = json ? findJsonFault(text) : null;
  if (fault !== null)
    throw bad(code, `This is not JSON: ${fault.message}`, { field: fault.path, line: fault.line, column: fault.column, expected: "JSON" });
  const lines = new LineCounter();
  const document = parseYaml(text, lines, code);
  const warnings: Warning[] = [];
  const file: File = { document, lines, warnings, code };
  for (const { message, pos } of document.warnings) warnings.push({ message, field: "", ...lineColumn(lines, pos[0]) });
  return { root: new Place(file, document.contents, [], 0), warnings };
}

interface File {
  document: Document;
  lines: LineCounter;
  warnings: Warning[];
  code: FileErrorCode;
}

export class Place {
  readonly path: JsonPath;
  readonly #file: File;
  readonly #node: Node | null;
  readonly #offset: number;

  /** Errors use `offset` as the position of a value without any text in the file. */
  constructor(file: File, node: unknown, path: JsonPath, offset: number) {
    this.#file = file;
    // An alias has the value that it names; errors point to where the alias is used.
    this.#node = (isAlias(node) ? node.resolve(file.document) : node) as Node | null;
    this.#offset = (node as Node | null)?.range?.[0] ?? offset;
    this.path = path;
  }

  get kind(): Kind {
    if (this.#node === null || this.#node === undefined) return "null";
    if (isMap(this.#node)) return "map";
    if (isSeq(this.#node)) return "list";
    const { value } = this;
    if (value === null || value === undefined) return "null";
    if (typeof value === "string") return "text";
    if (typeof value === "number") return "number";
    return typeof value === "boolean" ? "boolean" : "other";
  }

  get value(): unknown {
    return isScalar(this.#node) ? this.#node.value : undefined;
  }

  /** A scalar exactly as it is written: `1.10` stays `1.10`. */
  get text(): string {
    if (!isScalar(this.#node)) return "";
    return typeof this.#node.value === "string" ? this.#node.value : (this.#node.source ?? String(this.#node.value));
  }

  /** The fields of a map, in order. A key that is written twice is refused. */
  entries(): { key: string; at: Place; value: Place }[] {
    if (!isMap(this.#node)) return [];
    const seen = new Set<string>();
    return this.#node.items.map((pair) => {
      const at = new Place(this.#file, pair.key, this.path, this.#offset);
      if (at.kind === "map" || at.kind === "list" || at.kind === "null") throw at.refuse("A key must be a plain text.", "a text as key");
      const key = at.text;
      const field = new Place(this.#file, pair.key, [...this.path, key], this.#offset);
      if (seen.has(key)) throw field.refuse(`The key '${key}' is there twice.`, "each key once");
      seen.add(key);
      return { key, at: field, value: new Place(this.#file, pair.value, [...this.path, key], field.#offset) };
    });
  }

  /** The fields of a map whose keys may have any type, such as `{ input: a }`. */
  pairs(): { key: Place; value: Place }[] {
    if (!isMap(this.#node)) return [];
    return this.#node.items.map((pair) => {
      const key = new Place(this.#file, pair.key, this.path, this.#offset);
      return { key, value: new Place(this.#file, pair.value, [...this.path, JSON.stringify(key.json())], key.#offset) };
    });
  }

  items(): Place[] {
    if (!isSeq(this.#node)) return [];
    return this.#node.items.map((item, index) => new Place(this.#file, item, [...this.path, index], this.#offset));
  }

  /** The value at a path below this value; the nearest existing value when the path does not exist. */
  find(path: JsonPath): Place {
    const [first, ...rest] = path;
    if (first === undefined) return this;
    const inner = typeof first === "number" ? this.items()[first] : this.entries().find(({ key }) => key === first)?.value;
    return inner === undefined ? this : inner.find(rest);
  }

  /** The value and everything inside it. */
  json(): Json {
    // An alias inside the value that it names would nest without end.
    if (this.path.length > jsonDepthMax) throw this.refuse("This is nested too deeply.", `at most ${jsonDepthMax} levels`);
    if (this.kind === "map") {
      const entries = this.entries().map(({ key, value }): [string, Json] => [key, value.json()]);
      return Object.fromEntries(entries);
    }
    if (this.kind === "list") return this.items().map((item) => item.json());
    if (this.kind === "null") return null;
    if (this.kind === "other" || (this.kind === "number" && !Number.isFinite(this.value)))
      throw this.refuse(`${this.text} has no form in JSON.`, "a text, a number, true, false, null, a list or a map");
    return this.value as Json;
  }

  get position(): Position {
    return { field: pathText(this.path), ...lineColumn(this.#file.lines, this.#offset) };
  }

  refuse(message: string, expected: string): LongshoreError {
    return bad(this.#file.code, message, { expected, ...this.position });
  }

  warn(message: string): void {
    this.#file.warnings.push({ message, ...this.position });
  }
}

function parseYaml(text: string, lineCounter: LineCounter, code: FileErrorCode): Document {
  try {
    // The parser's own check for duplicate keys compares every pair of keys; `entries` does it in one pass.
    const composer = new Composer({ lineCounter, prettyErrors: false, uniqueKeys: false, version: "1.2", schema: "core" });
    const documents = composer.compose(new ShallowParser(lineCounter.addNewLine).parse(text), true, text.length);
    // There is always one document, even for an empty text.
    const document = documents.next().value as Document;
    const next = documents.next().value as Document | undefined;
    if (next !== undefined) {
      const detail = { field: "", expected: "one document", ...lineColumn(lineCounter, next.range?.[0] ?? 0) };
      throw bad(code, "This is not YAML: There are several documents in it.", detail);
    }
    const error = document.errors.find((one) => !isSpurious(one));
    if (error !== undefined) {
      throw bad(code, `This is not YAML: ${error.message}`, {
        field: "",
        expected: "YAML 1.2 or JSON",
        ...lineColumn(lineCounter, error.pos[0]),
      });
    }
    // Walks the document once, only to limit what aliases expand to and to find aliases that name nothing.
    document.toJS({ mapAsMap: true, maxAliasCount: aliasesMax });
    return document;
  } catch (error) {
    if (error instanceof LongshoreError) throw error;
    const reason = (error as Error).message;
    throw bad(code, `This cannot be read: ${reason}`, {
      field: "",
      line: 1,
      column: 1,
      expected: "a file of ordinary depth, with few aliases",
    });
  }
}

/** The parser wrongly warns about every key such as `{ input: a }` except the first key of a map (eemeli/yaml#646). */
function isSpurious({ code, message }: { code: string; message: string }): boolean {
  return code === "IMPOSSIBLE" && message.startsWith("Map comment with trailing content");
}

function lineColumn(lines: LineCounter, offset: number): { line: number; column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

/** The position is only in the detail: a caller that knows the file's name writes `file:line:column: message`. */
function bad(
  code: FileErrorCode,
  message: string,
  detail: { field: string; expected: string; line: number; column: number },
): LongshoreError {
  return new LongshoreError(code, message, { detail });
}
