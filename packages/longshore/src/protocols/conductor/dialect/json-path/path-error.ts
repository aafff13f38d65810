/** A path or pattern that cannot be read. The message says what is wrong with it, without naming where it stands. */
export class PathError extends Error {
  override readonly name = "PathError";
}
