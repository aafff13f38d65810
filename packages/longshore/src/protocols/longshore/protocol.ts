// Our own protocol, as the registry lists it: the dialect of `workflow()`. Its routes are the server's own API, in `server/admin/`.

import type { Protocol } from "../protocol.ts";

export const longshoreProtocol: Protocol = {
  name: "longshore",
  async prepare() {
    const { codeDialect } = await import("./dialect/dialect.ts");
    return { dialects: [codeDialect], open: async () => ({ handle: {} }) };
  },
};
