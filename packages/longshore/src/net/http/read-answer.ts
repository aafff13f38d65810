// The body of an answer to a request of ours. What sends it may be wrong or hostile: it is read no further than its reader can use.

/** As many bytes as there are, or the beginning, which is longer than `bytesMax` then. The connection of a longer answer is closed. */
export async function readAnswer({ body }: Response, bytesMax: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body ?? []) {
    pieces.push(piece);
    bytes += piece.byteLength;
    if (bytes > bytesMax) break;
  }
  return Buffer.concat(pieces);
}
