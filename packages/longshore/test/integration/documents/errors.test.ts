import { expect, it } from "vitest";
import { errorCodes } from "../../../src/core/errors.ts";
import { readDocument, sectionsOf } from "../../support/markdown.ts";

const sections = sectionsOf(readDocument("docs/reference/errors.md"));

it("every error code has a section in docs/reference/errors.md, and every section a code", () => {
  expect(sections.map(({ title }) => title).sort()).toEqual([...errorCodes].sort());
});

it("every section about an error code has a text", () => {
  expect(sections.filter(({ text }) => text.trim().length < 40).map(({ title }) => title)).toEqual([]);
});
