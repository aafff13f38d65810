// Bodies that nodes send in pieces while the owner performs their requests.

import { PassThrough, type Readable } from "node:stream";
import { LongshoreError } from "../core/errors.ts";
import type { LinkEnd } from "./link/service.ts";

export interface CarriedPiece {
  readonly upload: string;
  /** In base64; absent at the end. */
  readonly bytes?: string;
  /** The client disconnected before the end of the body. */
  readonly isBroken?: boolean;
}

/** Maximum number of bodies that one link receives at a time: as many as one connection of a listener may have in flight. Each holds a piece or two. */
const uploadsMax = 1_000;
/** Maximum number of bytes that the route has not read. A node waits for room, so only a faulty node sends more. */
const unreadBytesMax = 4_194_304;

interface Upload {
  readonly stream: PassThrough;
  readonly link: LinkEnd;
  /** Settles when the route has read everything that waits; null when nothing waits. All waiting pieces share this promise. */
  taken: Promise<void> | null;
}

export class Uploads {
  readonly #uploads = new Map<string, Upload>();

  /** Bodies on their way. */
  get size(): number {
    return this.#uploads.size;
  }

  /** Throws LONGSHORE_LIMIT when the node sends too many. */
  begin(name: string, link: LinkEnd): Readable {
    const count = [...this.#uploads.values()].filter((upload) => upload.link === link).length;
    if (count >= uploadsMax)
      throw new LongshoreError("LONGSHORE_LIMIT", `${uploadsMax} bodies of this node are on their way already; send it again later.`);
    const stream = new PassThrough();
    // A body may break off while its route does not read, and an error without a listener ends the process.
    stream.on("error", () => {});
    this.#uploads.set(name, { stream, link, taken: null });
    return stream;
  }

  /** Resolves when there is room for the next piece. */
  piece({ upload, bytes, isBroken }: CarriedPiece): Promise<void> | undefined {
    const found = this.#uploads.get(upload);
    // The route has replied without reading all of it.
    if (found === undefined || found.stream.destroyed || found.stream.writableEnded) return undefined;
    const { stream } = found;
    if (isBroken) return void stream.destroy(brokenOff());
    if (bytes === undefined) return void stream.end();
    if (stream.writableLength > unreadBytesMax) return void stream.destroy(brokenOff());
    if (stream.write(Buffer.from(bytes, "base64"))) return undefined;
    found.taken ??= new Promise((resolve) => {
      const taken = () => {
        stream.off("drain", taken);
        stream.off("close", taken);
        found.taken = null;
        resolve();
      };
      stream.on("drain", taken);
      stream.on("close", taken);
    });
    return found.taken;
  }

  /** The route has replied: pieces that still arrive are not read. */
  end(name: string): void {
    this.#uploads.get(name)?.stream.destroy();
    this.#uploads.delete(name);
  }

  breakOf(link: LinkEnd): void {
    for (const { stream, link: from } of [...this.#uploads.values()]) if (from === link) stream.destroy(brokenOff());
  }

  close(): void {
    for (const name of [...this.#uploads.keys()]) this.end(name);
  }
}

function brokenOff(): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_INPUT", "The body broke off before its end.");
}
