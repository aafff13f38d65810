import { expect, it } from "vitest";
import { settingsOf } from "./options.ts";

it("settings are taken from the options, then from the environment, then from our defaults", () => {
  const env = {
    STEPFLOW_SERVICE_NAME: "env",
    STEPFLOW_BLOB_API_URL: "http://blobs:7837/api/v1/blobs/",
    STEPFLOW_BLOB_THRESHOLD_BYTES: "10",
  };
  expect(settingsOf({ env })).toMatchObject({
    port: 0,
    host: "127.0.0.1",
    handshake: true,
    service: "env",
    blobApiUrl: "http://blobs:7837/api/v1/blobs",
    blobThresholdBytes: 10,
    slotWaitMs: 30_000,
  });
  const told = settingsOf({ env, service: "told", blobApiUrl: "http://near:1/b", blobThresholdBytes: 0, slotWait: "5s" });
  expect(told).toMatchObject({ service: "told", blobApiUrl: "http://near:1/b", blobThresholdBytes: 0, slotWaitMs: 5_000 });
  expect(settingsOf({ env: {} })).toMatchObject({ service: "stepflow-worker", blobApiUrl: undefined, blobThresholdBytes: undefined });
});

it("a variable that must be a number and is not is refused, and the error shows its text", () => {
  expect(() => settingsOf({ env: { STEPFLOW_BLOB_THRESHOLD_BYTES: "1 MB" } })).toThrow(
    'The environment variable STEPFLOW_BLOB_THRESHOLD_BYTES is "1 MB", expected a whole number from 0 to 9007199254740991.',
  );
});
