// Several servers may share data that one of them owns. The others read rows; what the owner keeps in memory they must ask it for.

/** Thrown by a read that only the owner of the data can answer. It is no error for a client: the request is passed on. */
export class NeedsOwner extends Error {
  constructor(cause?: unknown) {
    super("Only the owner of the data can answer this.", { cause });
  }
}
