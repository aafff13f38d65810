import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parseDocument } from "./parse.ts";
import { compareOutput, runDocument } from "./run.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));

const block = (language: string, text: string, ...directives: string[]): string =>
  [...directives.map((one) => `<!-- ${one} -->`), `\`\`\`${language}`, text, "```", ""].join("\n");

async function run(...parts: string[]): Promise<{ states: string[]; message: string }> {
  const results = await runDocument(parts.join("\n"), repository);
  return { states: results.map((one) => one.state), message: results.at(-1)?.message ?? "" };
}

describe("documentation blocks", () => {
  it("runs shell, JavaScript, TypeScript and Python blocks", async () => {
    const { states } = await run(
      block("sh", "test 1 = 1"),
      block("js", `console.log("js");`, "expect: js"),
      block("ts", `const n: number = 2;\nconsole.log(n);`, "expect: 2"),
      block("py", "print(1 + 2)", "expect: 3"),
    );
    expect(states).toEqual(["ran", "ran", "ran", "ran"]);
  });

  it("fails on a shell block that ends with an error, and stops there", async () => {
    const { states, message } = await run(block("sh", "echo before\nfalse\necho after"), block("sh", "true"));
    expect(states).toEqual(["failed"]);
    expect(message).toContain("ended with 1");
    expect(message).not.toContain("after");
  });

  it("fails when an expected text is not printed", async () => {
    const { states, message } = await run(block("sh", "echo one", "expect: two"));
    expect(states).toEqual(["failed"]);
    expect(message).toContain("two");
  });

  it("fails on JSON and YAML that do not parse", async () => {
    expect((await run(block("json", "{ nope }"))).states).toEqual(["failed"]);
    expect((await run(block("yaml", "a: [1"))).states).toEqual(["failed"]);
  });

  it("fails on a TypeScript block that does not compile", async () => {
    const { states, message } = await run(block("ts", `export const n: number = "text";`, "file: wrong.ts"));
    expect(states).toEqual(["ran", "failed"]);
    expect(message).toContain("wrong.ts");
  });

  it("fails on a language that it cannot run", async () => {
    expect((await run(block("cobol", "DISPLAY 1"))).states).toEqual(["failed"]);
  });

  it("makes a saved file available to the blocks after it", async () => {
    expect((await run(block("js", `console.log("saved");`, "file: a/b.js"), block("sh", "node a/b.js", "expect: saved"))).states).toEqual([
      "ran",
      "ran",
    ]);
  });

  it("keeps a background block running until the document ends", async () => {
    const server = `require("node:http").createServer((q, s) => s.end("hello")).listen(0, "127.0.0.1", function () {
      require("node:fs").writeFileSync("port", String(this.address().port)); console.log("listening"); });`;
    const client = `curl -sf http://127.0.0.1:$(cat port)/`;
    const { states, message } = await run(
      block("js", server, "file: server.cjs"),
      block("sh", "echo $$ > pid; exec node server.cjs", "background: listening"),
      block("sh", client, "expect: hello"),
    );
    expect(message).toBe("");
    expect(states).toEqual(["ran", "ran", "ran"]);
  });

  it("fails when a background block ends before it is ready", async () => {
    const { states, message } = await run(block("sh", "echo starting", "background: listening"));
    expect(states).toEqual(["failed"]);
    expect(message).toContain("ended before it was ready");
  });

  it("accepts an illustrative block without running it, and requires a reason", async () => {
    expect((await run(block("sh", "exit 1", "illustrative: it would fail"))).states).toEqual(["shown"]);
    expect((await run(block("sh", "exit 1", "illustrative:"))).message).toContain("needs a text");
  });

  it("fails on a directive that no block follows", async () => {
    expect((await run("<!-- expect: x -->", "", "Some text.")).message).toContain("not followed");
  });

  it("compares a shown output with the block before it", async () => {
    const talk = block("sh", "echo run 17 started; echo noise; echo done");
    expect((await run(talk, block("text", "run ... started\ndone", "output"))).states).toEqual(["ran", "ran"]);
    expect((await run(talk, block("text", "done\nrun ... started", "output"))).states).toEqual(["ran", "failed"]);
  });
});

describe("parsing", () => {
  it("keeps inner fences of a longer fence, and removes the indent of a list item", () => {
    const actions = parseDocument("````text\n```sh\nfalse\n```\n````\n\n- item\n\n  ```sh\n  echo one\n    two\n  ```\n");
    expect(actions.map((one) => one.kind === "block" && one.text)).toEqual(["```sh\nfalse\n```\n", "echo one\n  two\n"]);
  });

  it("refuses a block that is never closed", () => {
    expect(() => parseDocument("```sh\necho\n")).toThrow("never closed");
  });

  it("treats special characters of a shown output as text", () => {
    expect(() => compareOutput("a+b (c)", "a+b (c)")).not.toThrow();
    expect(() => compareOutput("a.b", "axb")).toThrow("not printed");
  });
});
