// README.md shows messages as fields and as bytes. Here each is read and written.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { Message } from "../../net/protobuf/protobuf.ts";
import * as messages from "./wire/messages.ts";

const page = readFileSync(new URL("README.md", import.meta.url), "utf8");
const shown = [...page.matchAll(/```text\n(\w+)\n(\{.*\})\n([0-9a-f]+)\n```/g)].map(([, name = "", json = "", hex = ""]) => ({
  name,
  json,
  hex,
}));

it("shows messages", () => {
  expect(shown.length).toBe(page.split("```text").length - 1);
  expect(shown.length).toBeGreaterThan(6);
});

it.each(shown)("the $name of the page matches its bytes: $json", ({ name, json, hex }) => {
  const message = (messages as unknown as { readonly [name: string]: Message<object, object> })[name] as Message<object, object>;
  const fields = JSON.parse(json) as object;
  expect(message.decode(Buffer.from(hex, "hex"))).toMatchObject(fields);
  expect(Buffer.from(message.encode(fields)).toString("hex")).toBe(hex);
});
