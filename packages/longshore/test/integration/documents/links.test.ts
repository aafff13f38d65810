// Every link from one document to another leads to an existing file and an existing heading.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readDocument, section } from "../../support/markdown.ts";

const repository = fileURLToPath(new URL("../../../../../", import.meta.url));
const list = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "--", "*.md"], { cwd: repository, encoding: "utf8" });
const documents = list.split("\n").filter((path) => path !== "" && existsSync(join(repository, path)));

it("every link between documents leads somewhere", () => {
  expect(documents.flatMap((path) => linksOf(path).flatMap((link) => brokenLink(path, link)))).toEqual([]);
});

it("every file that a map of the source names exists", () => {
  const source = "packages/longshore/src/";
  const readmes = documents.filter((path) => /\/protocols\/[\w-]+\/README\.md$/.test(path));
  const maps: [document: string, title: string, below: string[]][] = [
    ["ARCHITECTURE.md", "Follow a question through the code", [source, ""]],
    ...readmes.map((path): [string, string, string[]] => [path, "Where it is", [`${dirname(path)}/`, source, ""]]),
  ];
  const named = maps.flatMap(([document, title, below]) =>
    [...section(readDocument(document), title).text.matchAll(/`([\w-]+\/[\w./-]*)`/g)].map(([, path = ""]) => {
      const there = below.some((folder) => existsSync(join(repository, folder, path)));
      return { document, path, there };
    }),
  );
  expect(readmes.length).toBeGreaterThan(4);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter(({ there }) => !there)).toEqual([]);
});

it("every page of docs/ can be reached from the README", () => {
  const reached = new Set(["README.md"]);
  for (const path of reached) {
    for (const link of linksOf(path)) if (link.split("#")[0]?.endsWith(".md")) reached.add(targetOf(path, link));
  }
  expect(documents.filter((path) => path.startsWith("docs/") && !reached.has(path))).toEqual([]);
});

it("[F-DOC-01] the guide to FlowKit links to the worker reference, to error handling and to the concepts", () => {
  const text = readDocument("docs/guides/flowkit.md");
  const seeAlso = text.slice(text.indexOf("\n## See also\n"));
  const lines = ["Worker reference", "Error handling", "Concepts"].map(
    (title) => new RegExp(`^- ${title}: (.+(?:\\n {2}.+)*)`, "m").exec(seeAlso)?.[1],
  );
  const [worker = "", errors = "", concepts = ""] = lines;
  expect(worker).toContain("](../reference/configuration.md#flowkit)");
  expect(errors).toContain("](../reference/errors.md)");
  expect(concepts).toContain("](../concepts/board.md)");
  expect(linksOf("docs/guides/flowkit.md").flatMap((link) => brokenLink("docs/guides/flowkit.md", link))).toEqual([]);
});

it("every heading of a README that the code names exists", () => {
  const sources = execFileSync("git", ["ls-files", "--", "packages/longshore/src/*.ts"], { cwd: repository, encoding: "utf8" }).split("\n");
  const named = sources.flatMap((path) =>
    [...(path === "" ? "" : readDocument(path)).matchAll(/([\w/-]*)README\.md[^"\n]{0,60}"([A-Z][\w ]+)"/g)].map(
      ([, folder = "", heading = ""]) => {
        const nearest = nearestReadme(dirname(path));
        const readme = nearest && `${dirname(nearest)}/${folder}README.md`;
        const known = readme !== undefined && headingsOf(readme).includes(heading.toLowerCase().replaceAll(" ", "-"));
        return { path, heading, known };
      },
    ),
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter(({ known }) => !known)).toEqual([]);
});

/** The page of the folder or of its parent folder. A source folder without a description has none. */
function nearestReadme(folder: string): string | undefined {
  const beside = join(folder, "README.md");
  if (existsSync(join(repository, beside))) return beside;
  return folder.endsWith("/src") ? undefined : nearestReadme(dirname(folder));
}

/** Links of the text; the content of code blocks is no link. */
function linksOf(path: string): string[] {
  const text = readDocument(path).replace(/^( *)(`{3,})[^\n]*\n[\s\S]*?^\1\2 *$/gm, "");
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link).filter((link) => !/^[a-z]+:/.test(link));
}

function targetOf(path: string, link: string): string {
  const [file = ""] = link.split("#");
  return file === "" ? path : normalize(join(dirname(path), file));
}

function brokenLink(path: string, link: string): string[] {
  const target = targetOf(path, link);
  const anchor = link.split("#")[1];
  if (!existsSync(join(repository, target))) return [`${path}: ${link} does not exist`];
  if (anchor === undefined || headingsOf(target).includes(anchor)) return [];
  return [`${path}: ${target} has no heading for #${anchor}`];
}

/** Headings as anchors, in the form of code hosting sites: lower case, no punctuation, dashes for spaces. */
function headingsOf(path: string): string[] {
  return [...readDocument(path).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replace(/\s/g, "-"),
  );
}
