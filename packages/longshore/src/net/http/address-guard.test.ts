import { expect, it } from "vitest";
import { AddressGuard } from "./address-guard.ts";

/** A resolver with these addresses for every name. */
const names =
  (...addresses: string[]) =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

const inside = [
  ...["127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"],
  ...["224.0.0.1", "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fd00::1", "ff02::1"],
  ...["64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "[::1]"],
  ...["192.88.99.1", "100::1", "3fff:fff::1", "5f00::1"],
];

it.each(inside)("refuses %s", async (address) => {
  await expect(new AddressGuard([]).addressOf(address)).rejects.toMatchObject({ message: expect.stringContaining("not public") });
});

it.each(["93.184.216.34", "2606:4700::1111", "172.32.0.1", "100.128.0.1", "192.88.100.1", "100:0:0:1::1", "5f01::1"])(
  "accepts the public address %s",
  async (address) => {
    expect(await new AddressGuard([]).addressOf(address)).toBe(address);
  },
);

it("checks the addresses of a name and returns one that was checked", async () => {
  expect(await new AddressGuard([], names("10.0.0.1", "93.184.216.34")).addressOf("mixed.example")).toBe("93.184.216.34");
  await expect(new AddressGuard([], names("10.0.0.1", "::1")).addressOf("inside.example")).rejects.toThrow("inside.example is not public");
  await expect(new AddressGuard([], names()).addressOf("nowhere.example")).rejects.toThrow("not public");
});

it("accepts what the configuration names", async () => {
  expect(await new AddressGuard(["10.1.0.0/16"]).addressOf("10.1.9.9")).toBe("10.1.9.9");
  await expect(new AddressGuard(["10.1.0.0/16"]).addressOf("10.2.0.1")).rejects.toThrow("not public");
  expect(await new AddressGuard([" Inside.Example "], names("10.0.0.1")).addressOf("inside.example")).toBe("10.0.0.1");
  await expect(new AddressGuard(["inside.example"], names("10.0.0.1")).addressOf("other.example")).rejects.toThrow("not public");
  expect(await new AddressGuard(["::1"]).addressOf("[::1]")).toBe("::1");
  expect(await new AddressGuard(["*"]).addressOf("127.0.0.1")).toBe("127.0.0.1");
});

it.each(["10.0.0.0/33", "10.0.0.0/x", "http://inside", "a b", ""])("refuses the target %j", (target) => {
  expect(() => new AddressGuard([target])).toThrow("is not a target, expected a host name, an address, a network");
});
