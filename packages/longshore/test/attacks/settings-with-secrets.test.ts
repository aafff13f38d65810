// The attacker reads what a server prints: the output of `longshore config`, its log, and the error of a start that failed. Addresses of
// services may contain passwords, also passwords that are not encoded, or as parameters.

import { expect, it } from "vitest";
import { serverSettings } from "../../src/cli/server-settings.ts";
import { withoutLogin } from "../../src/core/without-login.ts";
import { readAddress } from "../../src/store/postgres/address.ts";
import { settingsOf } from "../../src/telemetry/options.ts";

it.each([
  ["http://collector:4318/v1", "http://collector:4318/v1"],
  ["collector:4317", "collector:4317"],
  ["http://ann:secret@collector/v1", "http://...@collector/v1"],
  ["ann:sec@ret@collector", "...@collector"],
  ["http://collector?api-key=secret@x", "http://collector?..."],
])("%s is shown as %s", (address, shown) => {
  expect(withoutLogin(address)).toBe(shown);
  expect(serverSettings.find(({ key }) => key === "otlpEndpoint")?.shown?.(address)).toBe(shown);
});

it.each([
  ["the endpoint of a collector", () => settingsOf({ env: {}, endpoint: "ftp://ann:secret@collector" })],
  ["headers of its requests", () => settingsOf({ env: { OTEL_EXPORTER_OTLP_HEADERS: "secret" }, endpoint: "http://collector" })],
  ["a password of PostgreSQL with a slash", () => readAddress("postgres://ann:secret/more@db/shop")],
])("the refusal of %s does not repeat it", (_what, start) => {
  expect(start).toThrow(/^(?!.*secret).*expected/);
});
