import { expect, it } from "vitest";
import { externalStoreOf } from "./external-store.ts";

const store = "postgres://ann:top-secret@db/shop";

it("does not exist when the data are in a folder or in memory", () => {
  expect(externalStoreOf({ data: "x" })).toBeNull();
  expect(externalStoreOf({ ephemeral: true })).toBeNull();
});

it("shows its address without the password, and lists the secrets to hide", () => {
  expect(externalStoreOf({ store, lease: "10s", ephemeral: false })).toMatchObject({
    shown: "postgres://ann@db/shop?schema=longshore",
    secrets: ["top-secret"],
  });
});

it.each([
  [{ store, data: "x" }, "store and data exclude each other"],
  [{ store, ephemeral: true, acceptDamage: true }, "store and ephemeral, acceptDamage exclude each other"],
  [{ lease: "5s" }, "lease is only for data in PostgreSQL"],
  [{ store, lease: "900ms" }, 'lease is "900ms", expected 1s to 60s.'],
  [{ store, lease: "2m" }, 'lease is "2m", expected 1s to 60s.'],
] as const)("refuses %o", (options, expected) => {
  expect(() => externalStoreOf(options)).toThrow(expected);
  expect(() => externalStoreOf(options)).not.toThrow("top-secret");
});
