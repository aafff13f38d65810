// The types of fields besides messages: how each is read, written and checked.
import type { Json, JsonObject } from "../../core/json/json.ts";
import { ProtobufFault, type ProtobufReader, type ProtobufWriter, type WireType } from "./bytes.ts";
import { readStruct, readValue, writeStruct, writeValue } from "./json.ts";

/** The JavaScript type of each field type. */
export interface Scalars {
  string: string;
  bytes: Uint8Array;
  bool: boolean;
  int32: number;
  uint32: number;
  /** Whole numbers beyond 2^53 are read as the nearest JavaScript number. */
  int64: number;
  uint64: number;
  fixed32: number;
  /** Times in nanoseconds are too large for a number. */
  fixed64: bigint;
  float: number;
  double: number;
  /** Any number: unknown numbers of an enum are kept. */
  enum: number;
  Value: Json;
  Struct: JsonObject;
  /** Milliseconds since 1970; finer parts are cut off. */
  Timestamp: number;
}

/** Reads and writes one value, including its length where its wire type has one. */
export interface ValueCodec {
  readonly wire: WireType;
  /** `before` is the value of an earlier occurrence of the same field; messages are merged into it. */
  read(reader: ProtobufReader, depth: number, before?: unknown): unknown;
  write(writer: ProtobufWriter, value: unknown, depth: number): void;
  /** The value of an implicit field when nothing was sent; undefined where absence is tracked. */
  readonly zero?: unknown;
  /** Used instead of a comparison with `zero`. */
  isZero?(value: unknown): boolean;
  /** The value of a map entry without a value. */
  none(): unknown;
  /** True for numbers, which a repeated field packs without a tag each. */
  readonly packs?: boolean;
}

const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED_32 = 5;

/** The years 1 to 9999, as in google.protobuf.Timestamp. */
const TIMESTAMP_SECONDS_MIN = -62_135_596_800;
const TIMESTAMP_SECONDS_MAX = 253_402_300_799;

export const scalars: Readonly<Record<keyof Scalars, ValueCodec>> = {
  string: {
    wire: LENGTH_DELIMITED,
    zero: "",
    none: () => "",
    read: (reader) => reader.string(),
    write: (writer, value) => writer.string(typeof value === "string" ? value : refuse(value, "a string")),
  },
  bytes: {
    wire: LENGTH_DELIMITED,
    // One shared instance: it has no byte that could be changed.
    zero: new Uint8Array(0),
    isZero: (value) => value instanceof Uint8Array && value.length === 0,
    none: () => new Uint8Array(0),
    read: (reader) => reader.bytes(),
    write: (writer, value) => writer.bytes(value instanceof Uint8Array ? value : refuse(value, "bytes (Uint8Array)")),
  },
  bool: {
    wire: VARINT,
    zero: false,
    none: () => false,
    packs: true,
    read: (reader) => reader.bool(),
    write: (writer, value) => writer.varint(typeof value === "boolean" ? (value ? 1 : 0) : refuse(value, "true or false")),
  },
  int32: integer(-(2 ** 31), 2 ** 31 - 1, (reader) => reader.int32()),
  uint32: integer(0, 2 ** 32 - 1, (reader) => reader.uint32()),
  int64: integer(-(2 ** 63), 2 ** 63 - 1024, (reader) => reader.int64()),
  uint64: integer(0, 2 ** 64 - 2048, (reader) => reader.uint64()),
  enum: integer(-(2 ** 31), 2 ** 31 - 1, (reader) => reader.int32()),
  fixed32: {
    wire: FIXED_32,
    zero: 0,
    none: () => 0,
    packs: true,
    read: (reader) => reader.fixed32(),
    write: (writer, value) => {
      const fits = typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 2 ** 32;
      writer.fixed32(fits ? value : refuse(value, `a whole number from 0 to ${2 ** 32 - 1}`));
    },
  },
  fixed64: {
    wire: FIXED_64,
    zero: 0n,
    none: () => 0n,
    packs: true,
    read: (reader) => reader.fixed64(),
    write: (writer, value) => {
      const fits = typeof value === "bigint" && value >= 0n && value < 1n << 64n;
      writer.fixed64(fits ? value : refuse(value, `a bigint from 0 to ${(1n << 64n) - 1n}`));
    },
  },
  float: real(
    FIXED_32,
    (reader) => reader.float(),
    (writer, value) => writer.float(value),
  ),
  double: real(
    FIXED_64,
    (reader) => reader.double(),
    (writer, value) => writer.double(value),
  ),
  Value: composite(
    () => null,
    (reader) => readValue(reader),
    (writer, value) => writeValue(writer, value as Json),
  ),
  Struct: composite(
    () => ({}),
    (reader) => readStruct(reader),
    (writer, value) => writeStruct(writer, value as JsonObject),
  ),
  Timestamp: composite(() => 0, readTimestamp, writeTimestamp),
};

function integer(min: number, max: number, read: (reader: ProtobufReader) => number): ValueCodec {
  const expected = `a whole number from ${min} to ${max}`;
  return {
    wire: VARINT,
    zero: 0,
    none: () => 0,
    packs: true,
    read,
    write: (writer, value) => {
      if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) refuse(value, expected);
      else writer.signed(value);
    },
  };
}

function real(
  wire: WireType,
  read: (reader: ProtobufReader) => number,
  write: (writer: ProtobufWriter, value: number) => void,
): ValueCodec {
  return {
    wire,
    zero: 0,
    none: () => 0,
    packs: true,
    // Minus zero has different bits, so it is sent.
    isZero: (value) => Object.is(value, 0),
    read,
    write: (writer, value) => write(writer, typeof value === "number" ? value : refuse(value, "a number")),
  };
}

/** A message that represents a JavaScript value. */
function composite(
  none: () => unknown,
  read: (reader: ProtobufReader) => unknown,
  write: (writer: ProtobufWriter, value: unknown) => void,
): ValueCodec {
  return {
    wire: LENGTH_DELIMITED,
    none,
    read: (reader) => {
      const outer = reader.enter();
      const value = read(reader);
      reader.end = outer;
      return value;
    },
    write: (writer, value) => {
      const before = writer.size;
      write(writer, value);
      writer.varint(writer.size - before);
    },
  };
}

function readTimestamp(reader: ProtobufReader): number {
  let seconds = 0;
  let nanos = 0;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === ((1 << 3) | VARINT)) seconds = reader.int64();
    else if (tag === ((2 << 3) | VARINT)) nanos = reader.int32();
    else reader.skip(tag, 0);
  }
  if (seconds < TIMESTAMP_SECONDS_MIN || seconds > TIMESTAMP_SECONDS_MAX) outOfRange(seconds, "seconds between the years 1 and 9999");
  if (nanos < 0 || nanos > 999_999_999) outOfRange(nanos, "nanoseconds from 0 to 999999999");
  return seconds * 1000 + Math.floor(nanos / 1_000_000);
}

function writeTimestamp(writer: ProtobufWriter, value: unknown): void {
  const seconds = typeof value === "number" ? Math.floor(value / 1000) : Number.NaN;
  if (!(seconds >= TIMESTAMP_SECONDS_MIN && seconds <= TIMESTAMP_SECONDS_MAX)) refuse(value, "milliseconds between the years 1 and 9999");
  const nanos = Math.floor(((value as number) - seconds * 1000) * 1_000_000);
  if (nanos !== 0) {
    writer.varint(nanos);
    writer.varint((2 << 3) | VARINT);
  }
  if (seconds === 0) return;
  writer.signed(seconds);
  writer.varint((1 << 3) | VARINT);
}

function outOfRange(value: number, expected: string): never {
  throw new ProtobufFault(`${value} is out of range`, expected);
}

function refuse(value: unknown, expected: string): never {
  throw new ProtobufFault(`${typeof value === "number" ? value : `a value of type ${typeof value}`} cannot be written`, expected);
}
