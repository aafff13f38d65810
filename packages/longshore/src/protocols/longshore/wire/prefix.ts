// The path of our own API. It has a separate file, because `longshore/client` needs the path and not the shapes.

export const apiPrefix = "/api/longshore/v1";
