// Several servers may share data that one of them owns. The others read rows. For everything that the owner keeps in memory, they pass the request
// to the owner.

/** Thrown by a read that only the owner of the data can answer. It is not an error for a client: the request is passed on. */
export class NeedsOwner extends Error {
  constructor(cause?: unknown) {
    super("Only the owner of the data can answer this.", { cause });
  }
}
