// Limits how deep YAML may nest. The library builds values recursively and compiles regular expressions on the way. When a regular
// expression is compiled while the stack is nearly full, Node ends the whole process, even in another thread. So depth is checked earlier,
// in the library's own parser.

import { Parser } from "yaml";

/** Twice the depth that values may have; the library overflows the stack from about 900 levels on. */
const nestingMax = 256;
/** The parser's stack also contains the document and one entry for a scalar. */
export const stackMax: number = nestingMax + 2;
export const nestsTooDeep: string = `it is nested deeper than ${nestingMax} levels`;

/** The library's parser, which throws as soon as a text nests too deep. */
export class ShallowParser extends Parser {
  override *next(source: string): ReturnType<Parser["next"]> {
    yield* super.next(source);
    if (this.stack.length > stackMax) throw new RangeError(nestsTooDeep);
  }
}
