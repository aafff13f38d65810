import { expect, it } from "vitest";
import { loadNats } from "./client.ts";

it("names the packages that a worker on NATS needs, and how to get them", async () => {
  const missing = Object.assign(new Error("Cannot find package '@nats-io/transport-node'"), { code: "ERR_MODULE_NOT_FOUND" });
  await expect(loadNats(() => Promise.reject(missing))).rejects.toMatchObject({
    code: "LONGSHORE_BAD_CONFIG",
    message:
      "NATS needs the packages @nats-io/transport-node and @nats-io/jetstream: npm install @nats-io/transport-node @nats-io/jetstream",
  });
  const other = new Error("broken");
  await expect(loadNats(() => Promise.reject(other))).rejects.toBe(other);
});
