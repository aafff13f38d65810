// Reads large JSON in slices, with turns of the event loop between them. A slice is several whole members or items in a row, which
// JSON.parse reads. A member that is larger than a slice is read in slices in the same way. A long string is read in pieces.

import { atOnce, inTurns, type Sliced } from "../slices/slice-work.ts";
import { Slices, turnRows } from "../slices/slices.ts";
import { jsonDepthMax, setOwn } from "./json.ts";
import { parseExact } from "./json-exact.ts";
import { findFaultFrom, type JsonFault } from "./json-position.ts";

/** The number of characters that are read in one turn. This takes some milliseconds, independent of the content. */
export const sliceChars = 262_144;

/** The result for a text. It is an object because the value itself may be null or false. */
export interface Parsed {
  readonly value: unknown;
  /** The mistake, when the text is not valid JSON; then there is no value. */
  readonly fault?: JsonFault;
}

/** Shared by all bodies of the process: each turn of the event loop reads one slice in all. */
const bodies = new Slices();

/**
 * The value of a text that is longer than a slice, or its mistake. Undefined when the caller must use the usual reader: for a short text,
 * one that is neither a list nor an object, and one that nests too deep.
 */
export async function parseLarge(text: string, chars = sliceChars, slices: Slices = bodies): Promise<Parsed | undefined> {
  if (text.length <= chars || !/^[ \t\r\n]*[[{]/.test(text.slice(0, chars))) return undefined;
  const reader = new SlicedReader(text, chars);
  for (;;) {
    await slices.turn(turnRows);
    const { at, opening } = reader.place();
    try {
      if (!reader.read()) return { value: reader.root };
    } catch {
      // Reads the slice again with the scanner that can explain the mistake.
      const fault = findFaultFrom(text, at, opening, chars + roomChars);
      return fault === null ? undefined : { value: undefined, fault };
    }
  }
}

/**
 * Runs other work on a large text in slices. They share the turns of the event loop with the slices of bodies. A short text is processed at
 * once.
 */
export function inBodyTurns<Result>(text: string, work: Sliced<Result>): Result | Promise<Result> {
  return text.length <= sliceChars ? atOnce(work) : inTurns(work, bodies);
}

/** The scanner also reads this many characters after the slice, because an escape may be cut there. */
const roomChars = 16;

/** The value of a text that is valid JSON. */
export function* parseInSlices(text: string, chars = sliceChars): Sliced<unknown> {
  if (text.length <= chars) return parseExact(text);
  const reader = new SlicedReader(text, chars);
  while (reader.read()) yield;
  return reader.root;
}

/** A list or an object that is read member by member. */
interface Open {
  readonly members: unknown[] | { [name: string]: unknown };
  /** True after a comma, where the container must not end. */
  wants: boolean;
}

/** A string that is read in pieces, and the name of its member. */
interface LongString {
  readonly name: string;
  readonly pieces: string[];
}

class SlicedReader {
  readonly root: unknown;
  readonly #text: string;
  readonly #chars: number;
  readonly #open: Open[] = [];
  #at = 0;
  #string: LongString | undefined = undefined;

  constructor(text: string, chars: number) {
    this.#text = text;
    this.#chars = chars;
    this.#skipSpace();
    this.root = this.#enter();
  }

  /** Where the next slice begins, and the brackets that are open there, as JSON text. */
  place(): { at: number; opening: string } {
    const outer = this.#open.slice(0, -1).map(({ members }) => (Array.isArray(members) ? "[" : '{"":'));
    const { members, wants } = this.#top();
    const isList = Array.isArray(members);
    const member = this.#string !== undefined ? '"' : wants ? "0," : "";
    return { at: this.#at, opening: `${outer.join("")}${isList ? "[" : "{"}${isList || member === "" ? "" : '"":'}${member}` };
  }

  /** Reads one slice. Returns false at the end; throws when the text is not valid JSON. */
  read(): boolean {
    if (this.#string !== undefined) this.#readPiece(this.#string);
    else this.#readRun();
    if (this.#open.length > 0) return true;
    this.#skipSpace();
    if (this.#at < this.#text.length) throw broken();
    return false;
  }

  /** Reads the members up to the last comma within a slice, or up to the end of the container. */
  #readRun(): void {
    const from = this.#at;
    const end = this.#runEnd();
    if (end === undefined) return this.#readLarge();
    const { members, wants } = this.#top();
    const run = this.#text.slice(from, end);
    const isLast = this.#text[end] !== ",";
    const isEmpty = run.trim() === "";
    if (isEmpty && (wants || !isLast)) throw broken();
    if (!isEmpty) add(members, run);
    this.#at = end;
    this.#behindMember();
  }

  /** Where the members that fit into a slice end; undefined when the first member alone is larger than a slice. */
  #runEnd(): number | undefined {
    const text = this.#text;
    const limit = this.#at + this.#chars;
    let depth = 0;
    let comma: number | undefined;
    let inText = false;
    for (let at = this.#at; at < text.length; at++) {
      if (at >= limit) return comma;
      const code = text.charCodeAt(at);
      if (code === 0x22) inText = !inText;
      else if (inText) {
        if (code === 0x5c) at++;
      } else if (code === 0x2c) {
        if (depth === 0) comma = at;
      } else if (code === 0x7b || code === 0x5b) {
        if (this.#open.length + ++depth > jsonDepthMax) throw broken();
      } else if (code === 0x7d || code === 0x5d) {
        if (depth-- === 0) return at;
      }
    }
    throw broken();
  }

  #readLarge(): void {
    const { members } = this.#top();
    const name = Array.isArray(members) ? "" : this.#readName();
    const sign = this.#text[this.#at];
    if (sign === "[" || sign === "{") put(members, name, this.#enter());
    else if (sign === '"') {
      this.#at++;
      this.#string = { name, pieces: [] };
    } else {
      put(members, name, this.#readScalar());
      this.#skipSpace();
      this.#behindMember();
    }
  }

  /** Reads a number, true, false or null that follows a long name. */
  #readScalar(): unknown {
    const from = this.#at;
    while (this.#at < from + this.#chars && !/[,\]}]/.test(this.#text.charAt(this.#at))) this.#at++;
    return parseExact(this.#text.slice(from, this.#at));
  }

  #readName(): string {
    this.#skipSpace();
    const from = this.#at;
    if (this.#text[from] !== '"') throw broken();
    this.#at = this.#stringEnd(from + 1, this.#text.length) + 1;
    const name = JSON.parse(this.#text.slice(from, this.#at)) as string;
    this.#skipSpace();
    if (this.#text[this.#at++] !== ":") throw broken();
    this.#skipSpace();
    return name;
  }

  #readPiece({ name, pieces }: LongString): void {
    const end = this.#stringEnd(this.#at, this.#at + this.#chars);
    pieces.push(JSON.parse(`"${this.#text.slice(this.#at, end)}"`) as string);
    this.#at = end;
    if (this.#text[end] !== '"') return;
    this.#at++;
    this.#string = undefined;
    put(this.#top().members, name, pieces.join(""));
    this.#skipSpace();
    this.#behindMember();
  }

  /**
   * The offset of the quote that ends the string. Without a quote before `limit`: the first offset from `limit` on that is not inside an
   * escape.
   */
  #stringEnd(from: number, limit: number): number {
    const text = this.#text;
    let at = from;
    while (at < limit && at < text.length) {
      const code = text.charCodeAt(at);
      if (code === 0x22) return at;
      at += code !== 0x5c ? 1 : text.charCodeAt(at + 1) === 0x75 ? 6 : 2;
    }
    if (at >= text.length) throw broken();
    return at;
  }

  /** Opens the list or object that begins here. */
  #enter(): unknown {
    const code = this.#text[this.#at++];
    if ((code !== "[" && code !== "{") || this.#open.length >= jsonDepthMax) throw broken();
    const members = code === "[" ? [] : {};
    this.#open.push({ members, wants: false });
    this.#skipSpace();
    return members;
  }

  /**
   * Reads what follows a member: a comma, or the end of this container. After an end it does the same for the container around it. After a
   * comma, another member must follow.
   */
  #behindMember(): void {
    while (this.#open.length > 0) {
      const top = this.#top();
      const sign = this.#text[this.#at++];
      if (sign === ",") {
        top.wants = true;
        return this.#skipSpace();
      }
      if (sign !== (Array.isArray(top.members) ? "]" : "}")) throw broken();
      this.#open.pop();
      this.#skipSpace();
    }
  }

  #top(): Open {
    return this.#open.at(-1) as Open;
  }

  #skipSpace(): void {
    for (; ; this.#at++) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    }
  }
}

function add(members: Open["members"], run: string): void {
  if (Array.isArray(members)) for (const item of parseExact(`[${run}]`) as unknown[]) members.push(item);
  else for (const [name, value] of Object.entries(parseExact(`{${run}}`) as object)) setOwn(members, name, value);
}

function put(members: Open["members"], name: string, value: unknown): void {
  if (Array.isArray(members)) members.push(value);
  else setOwn(members, name, value);
}

function broken(): Error {
  return new SyntaxError("The text is not JSON.");
}
