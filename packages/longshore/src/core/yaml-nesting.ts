// How deep YAML may nest. The library builds values by calls within calls, and compiles patterns on the way: Node ends the whole process, whichever
// thread it is in, when a pattern must be compiled while the stack is nearly full. So depth is counted where it is still a list: the
// library's own parser has what it is in on a stack.

import { Parser } from "yaml";

/** Twice what values may nest; the library's calls overflow the stack from about 900 levels on. */
const nestingMax = 256;
/** The document is on the stack of the parser too, and what a scalar needs. */
export const stackMax: number = nestingMax + 2;
export const nestsTooDeep: string = `it is nested deeper than ${nestingMax} levels`;

/** The library's parser, which throws as soon as a text is deeper. */
export class ShallowParser extends Parser {
  override *next(source: string): ReturnType<Parser["next"]> {
    yield* super.next(source);
    if (this.stack.length > stackMax) throw new RangeError(nestsTooDeep);
  }
}
