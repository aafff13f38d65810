// The attacker, with a worker token, stores a blob with half of a surrogate pair in its name, which no header can contain. The server must
// refuse the name, and not fail when the blob is read. Or the attacker stores one byte under a name of megabytes, which counted for no
// quota.

import { expect, it, onTestFinished } from "vitest";
import { openChannel } from "../../src/net/grpc/client.ts";
import { BlobService } from "../../src/protocols/stepflow/wire/services.ts";
import { serve } from "../../src/server/index.ts";
import { raw, startStepflow } from "../support/stepflow-server.ts";

it("a blob's name with half of a surrogate pair is refused with 400", async () => {
  const { call } = await startStepflow();
  for (const name of ["\\ud800", "a\\udfffb"]) {
    const stored = await call("POST", "/blobs", raw(`{"data":1,"filename":"${name}"}`), { "content-type": "application/json" });
    expect(stored.status).toBe(400);
    expect(stored.body.error.message).toContain("filename");
  }
});

it("a blob's name of megabytes, or with a NUL, is refused over gRPC and over REST", async () => {
  const tokens = ["worker:worker-0123456789:w"];
  const server = await serve({ ephemeral: true, port: 0, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const channel = openChannel(server.url as string, { metadata: { authorization: "Bearer worker-0123456789" } });
  onTestFinished(() => channel.close());
  for (const filename of ["n".repeat(8_000_000), "n".repeat(256), "a\u0000b"]) {
    for (const content of [{ jsonData: 1 }, { rawData: Buffer.from("1") }]) {
      const put = channel.unary(BlobService.PutBlob, { ...content, filename });
      await expect(put).rejects.toMatchObject({ code: 3, message: expect.stringContaining("filename") });
    }
  }
  expect(await channel.unary(BlobService.PutBlob, { jsonData: 1, filename: "n".repeat(255) })).toMatchObject({ filename: "n".repeat(255) });
});
