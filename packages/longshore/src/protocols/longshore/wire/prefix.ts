// The path of our own API. In a file of its own, because `longshore/client` needs the path and not the shapes.

export const apiPrefix = "/api/longshore/v1";
