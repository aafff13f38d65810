// BLAKE2b with a digest of any length (RFC 7693). Node supports only 64 bytes, and a shorter digest is a different hash, not a prefix. The
// compression of one block needs 64-bit integers, which are slow in JavaScript. So it is WebAssembly that is generated when this file is
// loaded. An id, which every batch needs, takes 0.6 us. With pairs of 32-bit numbers it would take 3 us.

const iv = [
  0x6a09e667f3bcc908n,
  0xbb67ae8584caa73bn,
  0x3c6ef372fe94f82bn,
  0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n,
  0x9b05688c2b3e6c1fn,
  0x1f83d9abfb41bd6bn,
  0x5be0cd19137e2179n,
];
/** The order of the message words in each round. It repeats after ten rounds. */
const schedule = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const rounds = 12;
/** The columns, then the diagonals of the 4 x 4 matrix of words. */
const mixes = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as [a: number, b: number, c: number, d: number][];

const blockBytes = 128;
// The layout of the shared memory: the state, the number of bytes so far, all ones in the last block, the block.
const stateAt = 0;
const countAt = 64;
const lastAt = 72;
const blockAt = 80;

type Code = readonly number[];

// Instructions as bytes.
const get = (local: number): Code => [0x20, local];
const set = (local: number): Code => [0x21, local];
const constant = (value: bigint): Code => [0x42, ...signedLeb(BigInt.asIntN(64, value))];
const address: Code = [0x41, 0];
const load = (at: number): Code => [...address, 0x29, 3, ...leb(at)];
const store = (at: number, value: Code): Code => [...address, ...value, 0x37, 3, ...leb(at)];
const add: Code = [0x7c];
const xor: Code = [0x85];
const rotateRight = (bits: bigint): Code => [...constant(bits), 0x8a];
const [by16, by24, by32, by63] = [rotateRight(16n), rotateRight(24n), rotateRight(32n), rotateRight(63n)];

/** The function G: the locals are the sixteen words; x and y select message words. */
function mix(code: number[], [a, b, c, d]: (typeof mixes)[number], x: number, y: number): void {
  const half = (word: number, first: Code, second: Code): void => {
    for (const step of [get(a), get(b), add, load(blockAt + 8 * word), add, set(a)]) code.push(...step);
    for (const step of [get(d), get(a), xor, first, set(d)]) code.push(...step);
    for (const step of [get(c), get(d), add, set(c)]) code.push(...step);
    for (const step of [get(b), get(c), xor, second, set(b)]) code.push(...step);
  };
  half(x, by32, by24);
  half(y, by16, by63);
}

/** The function F: mixes the block in memory into the state. */
function compression(): Code {
  const code: number[] = [];
  for (const [at, word] of iv.entries()) code.push(...load(stateAt + 8 * at), ...set(at), ...constant(word), ...set(8 + at));
  code.push(...get(12), ...load(countAt), ...xor, ...set(12));
  code.push(...get(14), ...load(lastAt), ...xor, ...set(14));
  for (let round = 0; round < rounds; round++) {
    const order = schedule[round % schedule.length] as number[];
    for (const [at, words] of mixes.entries()) mix(code, words, order[2 * at] as number, order[2 * at + 1] as number);
  }
  for (const at of iv.keys()) {
    const place = stateAt + 8 * at;
    code.push(...store(place, [...load(place), ...get(at), ...xor, ...get(8 + at), ...xor]));
  }
  return code;
}

/** A module with one page of memory and one function without parameters. The bytes are always the same. */
export function moduleBytes(): Uint8Array {
  const section = (id: number, bytes: Code): Code => [id, ...leb(bytes.length), ...bytes];
  const name = (text: string): Code => [text.length, ...Buffer.from(text)];
  // Sixteen locals of type i64, the code, the end.
  const body = [1, 16, 0x7e, ...compression(), 0x0b];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 0, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, 1]),
    ...section(7, [2, ...name("memory"), 2, 0, ...name("compress"), 0, 0]),
    ...section(10, [1, ...leb(body.length), ...body]),
  ]);
}

/** Unsigned LEB128: seven bits per byte. */
function leb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)];
}

function signedLeb(value: bigint): number[] {
  const low = Number(value & 0x7fn);
  const rest = value >> 7n;
  const isLast = rest === (low < 0x40 ? 0n : -1n);
  return isLast ? [low] : [low | 0x80, ...signedLeb(rest)];
}

/** Declares only the used part of WebAssembly, because the types of Node do not declare it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: { readonly memory: { readonly buffer: ArrayBuffer }; compress(): void } };
};

const { memory, compress } = new WebAssembly.Instance(new WebAssembly.Module(moduleBytes())).exports;
// Keeps no state between two calls.
const bytes = Buffer.from(memory.buffer, 0, blockAt + blockBytes);
const initial = Buffer.from(BigUint64Array.from(iv).buffer);

/** The digest in hex; `digestBytes` is at most 64. */
export function blake2b(message: Uint8Array, digestBytes: number): string {
  initial.copy(bytes, stateAt);
  // The parameter block: no key, one leaf, and the length.
  bytes.writeUInt32LE((bytes.readUInt32LE(stateAt) ^ 0x01010000 ^ digestBytes) >>> 0, stateAt);
  bytes.fill(0, countAt, blockAt);
  let at = 0;
  for (; message.length - at > blockBytes; at += blockBytes) {
    bytes.set(message.subarray(at, at + blockBytes), blockAt);
    bytes.writeUIntLE(at + blockBytes, countAt, 6);
    compress();
  }
  bytes.set(message.subarray(at), blockAt);
  bytes.fill(0, blockAt + message.length - at);
  bytes.writeUIntLE(message.length, countAt, 6);
  bytes.fill(0xff, lastAt, lastAt + 8);
  compress();
  return bytes.toString("hex", stateAt, stateAt + digestBytes);
}
