// Which components the server brings itself. A list of its own, so that routing need not load them.

export const builtinPaths: readonly string[] = [
  "/openai",
  "/create_messages",
  "/eval",
  "/iterate",
  "/map",
  "/load_file",
  "/put_blob",
  "/get_blob",
  "/noop",
  "/sleep",
];
