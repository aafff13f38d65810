// Where our own API is. Apart from the shapes, because a client needs nothing else of them.

export const apiPrefix = "/api/longshore/v1";
