import { expect, it } from "vitest";
import { readAddress } from "./address.ts";

it("reads host, database and schema, and shows everything but the password", () => {
  const address = readAddress("postgres://ann:se%2Fcret@db:5433/shop?sslmode=verify-full&schema=prod");
  expect(address).toEqual({
    hosts: [{ name: "db:5433", connectionString: "postgres://ann:se%2Fcret@db:5433/shop?sslmode=verify-full" }],
    ...{ schema: "prod", settings: "" },
    shown: "postgres://ann@db:5433/shop?sslmode=verify-full&schema=prod",
    plain: "postgres://ann@db:5433/shop?sslmode=verify-full",
    secrets: ["se%2Fcret", "se/cret"],
  });
});

it("has an address for each of several hosts", () => {
  const { hosts, shown } = readAddress("postgresql://ann:pw@one,two:6432,[::1]:7/shop");
  expect(hosts.map(({ connectionString }) => connectionString)).toEqual([
    "postgresql://ann:pw@one/shop",
    "postgresql://ann:pw@two:6432/shop",
    "postgresql://ann:pw@[::1]:7/shop",
  ]);
  expect(shown).toBe("postgresql://ann@one,two:6432,[::1]:7/shop?schema=longshore");
});

it("hides a password among the parameters, and accepts sockets and session settings", () => {
  const { hosts, secrets, shown, settings } = readAddress("postgres:///shop?host=/run/postgresql&password=pw&options=-c%20work_mem%3D8MB");
  expect({ secrets, settings }).toEqual({ secrets: ["pw"], settings: "-c work_mem=8MB" });
  expect(hosts).toEqual([{ name: "/run/postgresql", connectionString: "postgres:///shop?host=%2Frun%2Fpostgresql&password=pw" }]);
  expect(shown).not.toContain("pw");
  const key = readAddress("postgres://ann@db/shop?sslpassword=hidden");
  expect([key.secrets, key.shown]).toEqual([["hidden"], "postgres://ann@db/shop?schema=longshore"]);
});

it.each([
  "",
  "mysql://ann@db/shop",
  "/var/lib/longshore",
  "postgres:/db",
  "postgres://ann:top/secret@db/shop",
  "postgres://ann:secret/top@db/shop",
  "postgres://ann:secret@db:port/shop",
  "postgres://ann:secret@db/shop?schema=a;drop",
  `postgres://ann:secret@${Array(17).fill("db").join(",")}/shop`,
])("refuses %j without repeating the password", (text) => {
  expect(() => readAddress(text)).toThrow(/^(?!.*secret)(?:The address of the store|"a;drop" cannot be the name of a schema)/);
});
