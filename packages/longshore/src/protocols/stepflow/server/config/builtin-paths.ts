// The paths of the built-in components. A separate list, so that routing need not load the components.

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
