// Reads a write-ahead log without SQLite. SQLite silently drops everything from the first frame with a wrong checksum on. This is right
// when a power cut has left an incomplete end. It is wrong for a damaged frame in the middle, because the commits after it were
// acknowledged. A commit is synced before the next one is written, so a commit before an intact frame was on disk.

import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { endianness } from "node:os";

export interface WalReport {
  /** Pages of the database after the newest commit that SQLite reads; null when it reads none. */
  readonly pageCount: number | null;
  /** Numbers of the pages in the log. */
  readonly pages: ReadonlySet<number>;
  /** Commits behind a damaged place: SQLite drops them. */
  readonly lostCommits: number;
}

interface WalHeader {
  readonly pageBytes: number;
  /** Whether the words of a checksum have the byte order of this machine. */
  readonly swapped: boolean;
  readonly salts: readonly [number, number];
  readonly sum: Sum;
  readonly intact: boolean;
}

interface Frame {
  readonly page: number;
  /** Pages of the database when the frame ends a commit, else 0. */
  readonly commitPages: number;
  readonly salts: readonly [number, number];
  /** The checksum stored in the frame. */
  readonly sum: Sum;
  /** Computes the checksum of the frame; `seed` is the checksum of the frame before it. */
  sumFrom(seed: Sum): Sum;
}

type Sum = readonly [number, number];

const headerBytes = 32;
const frameHeaderBytes = 24;
/** The first word of a log; its last bit means that checksums are over big-endian words. */
const magic = 0x377f0682;
/** Frames per read: about 1 MiB with pages of 4 KiB. */
const framesAtOnce = 256;
/** A log starts again from its beginning after thousands of pages, so this happens at most once during a read. */
const triesMax = 3;

const nothing: WalReport = { pageCount: null, pages: new Set(), lostCommits: 0 };

export function readWal(file: string): WalReport {
  let handle: number;
  try {
    handle = openSync(file, "r");
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return nothing;
    throw error;
  }
  try {
    return readSteady(handle);
  } finally {
    closeSync(handle);
  }
}

/** A running server may begin the log again during the read. Then the result is a mixture of both logs, and the read is repeated. */
function readSteady(handle: number): WalReport {
  let report = nothing;
  for (let tries = 0; tries < triesMax; tries++) {
    const header = readHeader(handle);
    if (header === null) return nothing;
    report = scan(header, frames(handle, header));
    const after = readHeader(handle);
    if (after !== null && same(after.sum, header.sum)) break;
  }
  return report;
}

function scan(header: WalHeader, all: Iterable<Frame>): WalReport {
  const pages = new Set<number>();
  const uncommitted: number[] = [];
  const behind = new BehindDamage(header);
  let pageCount: number | null = null;
  let sum = header.sum;
  let readable = header.intact;
  for (const frame of all) {
    readable &&= same(frame.salts, header.salts) && same(frame.sumFrom(sum), frame.sum);
    if (!readable) {
      behind.see(frame);
      continue;
    }
    sum = frame.sum;
    uncommitted.push(frame.page);
    if (frame.commitPages === 0) continue;
    for (const page of uncommitted.splice(0)) pages.add(page);
    pageCount = frame.commitPages;
  }
  return { pageCount, pages, lostCommits: behind.lostCommits };
}

/** Examines the frames after the first one that SQLite cannot read. */
class BehindDamage {
  readonly #header: WalHeader;
  #before: Frame | null = null;
  #commits = 0;
  #wasSynced = false;

  constructor(header: WalHeader) {
    this.#header = header;
  }

  see(frame: Frame): void {
    const before = this.#before;
    this.#before = frame;
    if (!this.#isOfThisLog(frame)) return;
    if (frame.commitPages > 0) this.#commits++;
    // This frame was written after the sync of the commit before it.
    if (before !== null && before.commitPages > 0 && this.#isOfThisLog(before) && same(frame.sumFrom(before.sum), frame.sum))
      this.#wasSynced = true;
  }

  /** The number of lost commits. An incomplete end loses none, because its only commit was never acknowledged. */
  get lostCommits(): number {
    return this.#wasSynced ? this.#commits : 0;
  }

  /** Frames of an earlier use of the file have other salts. A damaged header may have lost one of them. */
  #isOfThisLog({ salts }: Frame): boolean {
    const [first, second] = this.#header.salts;
    return this.#header.intact ? salts[0] === first && salts[1] === second : salts[0] === first || salts[1] === second;
  }
}

function readHeader(handle: number): WalHeader | null {
  const bytes = Buffer.from(new ArrayBuffer(headerBytes));
  if (readSync(handle, bytes, 0, headerBytes, 0) < headerBytes) return null;
  const pageBytes = bytes.readUInt32BE(8);
  // An impossible page size: the header does not show where frames start.
  if (pageBytes < 512 || pageBytes > 65_536 || (pageBytes & (pageBytes - 1)) !== 0) return null;
  const first = bytes.readUInt32BE(0);
  const swapped = ((first & 1) === 1) !== (endianness() === "BE");
  const sum: Sum = [bytes.readUInt32BE(24), bytes.readUInt32BE(28)];
  const counted = add([0, 0], wordsOf(bytes, swapped), 0, headerBytes / 4 - 2);
  const intact = (first & ~1) >>> 0 === magic && same(counted, sum);
  return { pageBytes, swapped, salts: [bytes.readUInt32BE(16), bytes.readUInt32BE(20)], sum, intact };
}

function* frames(handle: number, { pageBytes, swapped }: WalHeader): Generator<Frame> {
  const frameBytes = frameHeaderBytes + pageBytes;
  const count = Math.floor((fstatSync(handle).size - headerBytes) / frameBytes);
  const buffer = Buffer.alloc(framesAtOnce * frameBytes);
  for (let first = 0; first < count; first += framesAtOnce) {
    const here = Math.min(framesAtOnce, count - first);
    readSync(handle, buffer, 0, here * frameBytes, headerBytes + first * frameBytes);
    for (let at = 0; at < here; at++) {
      // The bytes are copied, because a frame is still used after the next ones have been read.
      const own = new Uint8Array(buffer.subarray(at * frameBytes, (at + 1) * frameBytes));
      yield frameOf(Buffer.from(own.buffer), swapped);
    }
  }
}

function frameOf(bytes: Buffer, swapped: boolean): Frame {
  return {
    page: bytes.readUInt32BE(0),
    commitPages: bytes.readUInt32BE(4),
    salts: [bytes.readUInt32BE(8), bytes.readUInt32BE(12)],
    sum: [bytes.readUInt32BE(16), bytes.readUInt32BE(20)],
    sumFrom(seed) {
      const words = wordsOf(bytes, swapped);
      return add(add(seed, words, 0, 2), words, frameHeaderBytes / 4, words.length);
    },
  };
}

/** The words in the byte order of the checksum. The bytes have their own memory. */
function wordsOf(bytes: Buffer, swapped: boolean): Uint32Array {
  return new Uint32Array(swapped ? new Uint8Array(Buffer.from(bytes).swap32()).buffer : bytes.buffer);
}

function add([first, second]: Sum, words: Uint32Array, from: number, to: number): Sum {
  let a = first;
  let b = second;
  for (let at = from; at < to; at += 2) {
    a = (a + (words[at] as number) + b) >>> 0;
    b = (b + (words[at + 1] as number) + a) >>> 0;
  }
  return [a, b];
}

function same([a, b]: Sum, [c, d]: Sum): boolean {
  return a === c && b === d;
}
