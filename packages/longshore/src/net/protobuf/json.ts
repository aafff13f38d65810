// google.protobuf.Value and Struct as the JSON they represent, without objects in between.
//
//   Value  { oneof kind { null_value = 1; number_value = 2; string_value = 3; bool_value = 4; struct_value = 5; list_value = 6 } }
//   Struct { map<string, Value> fields = 1 }      ListValue { repeated Value values = 1 }
//
// All numbers are doubles there, so a whole number within the safe range stays unchanged. NaN and the infinities have no JSON: they are
// read and written as null.

import { type Json, type JsonObject, jsonDepthMax, setOwn } from "../../core/json/json.ts";
import { ExactNumber } from "../../core/json/json-exact.ts";
import { ProtobufFault, type ProtobufReader, type ProtobufWriter } from "./bytes.ts";

const NULL = (1 << 3) | 0;
const NUMBER = (2 << 3) | 1;
const STRING = (3 << 3) | 2;
const BOOL = (4 << 3) | 0;
const STRUCT = (5 << 3) | 2;
const LIST = (6 << 3) | 2;
/** The tag of the only field of Struct and of ListValue, and of a map entry's key (FIRST) and value (SECOND). */
const FIRST = (1 << 3) | 2;
const SECOND = (2 << 3) | 2;

/** Reads the fields of a Value up to the reader's end. A Value without a field is null. */
export function readValue(reader: ProtobufReader, depth = 0): Json {
  let value: Json = null;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === STRING) value = reader.string();
    else if (tag === NUMBER) value = finite(reader.double());
    else if (tag === BOOL) value = reader.bool();
    else if (tag === STRUCT) value = nested(reader, depth, readStruct);
    else if (tag === LIST) value = nested(reader, depth, readList);
    else if (tag === NULL) {
      reader.uint32();
      value = null;
    } else reader.skip(tag, depth);
  }
  return value;
}

export function readStruct(reader: ProtobufReader, depth = 0): JsonObject {
  const object: JsonObject = {};
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== FIRST) {
      reader.skip(tag, depth);
      continue;
    }
    const outer = reader.enter();
    readEntry(reader, object, depth);
    reader.end = outer;
  }
  return object;
}

function readEntry(reader: ProtobufReader, object: JsonObject, depth: number): void {
  let key = "";
  let value: Json = null;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === FIRST) key = reader.string();
    else if (tag === SECOND) {
      const outer = reader.enter();
      value = readValue(reader, depth);
      reader.end = outer;
    } else reader.skip(tag, depth);
  }
  setOwn(object, key, value);
}

function readList(reader: ProtobufReader, depth: number): Json[] {
  const list: Json[] = [];
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== FIRST) {
      reader.skip(tag, depth);
      continue;
    }
    const outer = reader.enter();
    list.push(readValue(reader, depth));
    reader.end = outer;
  }
  return list;
}

function nested<T>(reader: ProtobufReader, depth: number, read: (reader: ProtobufReader, depth: number) => T): T {
  checkDepth(depth);
  const outer = reader.enter();
  const value = read(reader, depth + 1);
  reader.end = outer;
  return value;
}

/** Writes the fields of a Value. Undefined members are left out, like JSON.stringify does. */
export function writeValue(writer: ProtobufWriter, value: Json, depth = 0): void {
  switch (typeof value) {
    case "string":
      writer.string(value);
      return writer.varint(STRING);
    case "number":
      if (!Number.isFinite(value)) return writeNull(writer);
      writer.double(value);
      return writer.varint(NUMBER);
    case "boolean":
      writer.varint(value ? 1 : 0);
      return writer.varint(BOOL);
    case "object":
      // A Value has only doubles.
      if (value instanceof ExactNumber) return writeValue(writer, Number(value), depth);
      return value === null ? writeNull(writer) : writeNested(writer, value, depth);
    default:
      throw new ProtobufFault(`a ${typeof value} cannot be written`, "a JSON value");
  }
}

export function writeStruct(writer: ProtobufWriter, object: JsonObject, depth = 0): void {
  if (typeof object !== "object" || object === null || Array.isArray(object)) {
    throw new ProtobufFault("only an object can be written here", "a JSON object");
  }
  const keys = Object.keys(object);
  for (let index = keys.length - 1; index >= 0; index--) {
    const key = keys[index] as string;
    const value = object[key] as Json | undefined;
    if (value === undefined) continue;
    const before = writer.size;
    writeValue(writer, value, depth);
    writer.varint(writer.size - before);
    writer.varint(SECOND);
    writer.string(key);
    writer.varint(FIRST);
    writer.varint(writer.size - before);
    writer.varint(FIRST);
  }
}

function writeNested(writer: ProtobufWriter, value: Json[] | JsonObject, depth: number): void {
  checkDepth(depth);
  const before = writer.size;
  if (Array.isArray(value)) {
    for (let index = value.length - 1; index >= 0; index--) {
      const start = writer.size;
      // A hole or an undefined element is null, like in JSON.stringify.
      writeValue(writer, value[index] ?? null, depth + 1);
      writer.varint(writer.size - start);
      writer.varint(FIRST);
    }
  } else writeStruct(writer, value, depth + 1);
  writer.varint(writer.size - before);
  writer.varint(Array.isArray(value) ? LIST : STRUCT);
}

function writeNull(writer: ProtobufWriter): void {
  writer.varint(0);
  writer.varint(NULL);
}

function checkDepth(depth: number): void {
  if (depth >= jsonDepthMax) throw new ProtobufFault(`the JSON nests deeper than ${jsonDepthMax} levels`);
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
