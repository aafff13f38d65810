/** A path or pattern that cannot be read. The message explains what is wrong with it, without naming its place. */
export class PathError extends Error {
  override readonly name = "PathError";
}
