// The attacker, with a worker token, stores a blob under a name that is no valid Unicode: half of a surrogate pair, which no header can carry.
// The server must refuse the name instead of failing when the blob is read.

import { expect, it } from "vitest";
import { raw, startStepflow } from "../support/stepflow-server.ts";

it("a blob's name with half of a surrogate pair is refused with 400", async () => {
  const { call } = await startStepflow();
  for (const name of ["\\ud800", "a\\udfffb"]) {
    const stored = await call("POST", "/blobs", raw(`{"data":1,"filename":"${name}"}`), { "content-type": "application/json" });
    expect(stored.status).toBe(400);
    expect(stored.body.error.message).toContain("filename");
  }
});
