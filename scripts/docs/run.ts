// Executes one document, block by block, in an empty folder where the built package is installed.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parse as parseYaml } from "yaml";
import { type Action, type Block, DocumentError, parseDocument } from "./parse.ts";
import { Background, type Command, runToEnd } from "./processes.ts";

// The port that every document speaks of; it is the server's default.
const PORT = 4500;
// Languages that show something which cannot be run: plain output and wire examples.
const PASSIVE = new Set(["", "text", "http", "diff"]);
// What the examples may use besides Node itself: packages that they import, and the one with which commands read TypeScript.
const PACKAGES = ["zod", "yaml", "tsx"];

export interface BlockResult {
  line: number;
  what: string;
  state: "ran" | "shown" | "failed";
  ms: number;
  message?: string;
}

/** Runs a document's blocks in order and stops at the first that fails, since later ones build on it. */
export async function runDocument(source: string, repository: string): Promise<BlockResult[]> {
  const results: BlockResult[] = [];
  const workspace = createWorkspace(repository);
  const background = new Background();
  const runner = new DocumentRunner(workspace, repository, background);
  try {
    for (const action of parseDocument(source)) {
      const started = performance.now();
      const result = (state: BlockResult["state"], message?: string): void => {
        const what = action.kind === "block" ? action.language || "text" : action.kind;
        results.push({ line: action.line, what, state, ms: performance.now() - started, ...(message === undefined ? {} : { message }) });
      };
      try {
        result((await runner.run(action)) ? "ran" : "shown");
      } catch (error) {
        result("failed", error instanceof Error ? error.message : String(error));
        return results;
      }
    }
    const typeError = await runner.checkTypes();
    if (typeError !== undefined) results.push({ line: 1, what: "types", state: "failed", ms: 0, message: typeError });
    return results;
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    return [...results, { line: error.line, what: "directive", state: "failed", ms: 0, message: error.message }];
  } finally {
    await background.stop();
    rmSync(workspace, { recursive: true, force: true });
  }
}

function createWorkspace(repository: string): string {
  const workspace = mkdtempSync(join(tmpdir(), "longshore-docs-"));
  const modules = join(workspace, "node_modules");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  writeFileSync(join(workspace, "package.json"), JSON.stringify({ private: true, type: "module" }));
  symlinkSync(join(repository, "packages/longshore"), join(modules, "longshore"));
  symlinkSync(join(repository, "packages/longshore/bin/longshore.js"), join(modules, ".bin/longshore"));
  for (const name of PACKAGES) symlinkSync(join(repository, "node_modules", name), join(modules, name));
  return workspace;
}

class DocumentRunner {
  readonly #workspace: string;
  readonly #repository: string;
  readonly #background: Background;
  #lastOutput = "";

  constructor(workspace: string, repository: string, background: Background) {
    this.#workspace = workspace;
    this.#repository = repository;
    this.#background = background;
  }

  /** Returns whether anything was executed; throws when the block does not do what the document says. */
  async run(action: Action): Promise<boolean> {
    if (action.kind === "server") await this.#startServer(action.args);
    else if (action.kind === "setup") await runToEnd(this.#shell(action.command, this.#workspace));
    else return this.#runBlock(action);
    return true;
  }

  /** Compiles the document's TypeScript files against the built package's declarations. */
  async checkTypes(): Promise<string | undefined> {
    const sources = readdirSync(this.#workspace, { recursive: true, encoding: "utf8" });
    if (!sources.some((path) => path.endsWith(".ts") && !path.startsWith("node_modules"))) return undefined;
    const compilerOptions = {
      ...{ target: "es2023", module: "nodenext", strict: true, noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true },
      ...{ types: ["node"], typeRoots: [join(this.#repository, "node_modules/@types")] },
    };
    writeFileSync(join(this.#workspace, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["**/*.ts"] }));
    try {
      await runToEnd(this.#node([join(this.#repository, "node_modules/typescript/bin/tsc"), "-p", "."], this.#workspace));
      return undefined;
    } catch (error) {
      return `the TypeScript blocks do not compile: ${(error as Error).message}`;
    }
  }

  async #runBlock(block: Block): Promise<boolean> {
    if (block.illustrative !== undefined) return false;
    if (block.output) {
      compareOutput(block.text, this.#lastOutput);
      return true;
    }
    if (block.file !== undefined) {
      const path = join(this.#workspace, block.file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, block.text);
    }
    if (block.language === "json") JSON.parse(block.text);
    else if (block.language === "yaml" || block.language === "yml") parseYaml(block.text);
    else if (PASSIVE.has(block.language)) return false;
    else if (block.file === undefined) await this.#execute(block);
    return true;
  }

  async #execute(block: Block): Promise<void> {
    const command = this.#commandFor(block);
    const { background } = block;
    this.#lastOutput =
      background === undefined ? await runToEnd(command) : await this.#background.start(command, (output) => output.includes(background));
    for (const text of block.expect) {
      if (!this.#lastOutput.includes(text)) throw new Error(`expected the output to contain "${text}", it was:\n${this.#lastOutput}`);
    }
  }

  #commandFor(block: Block): Command {
    const cwd = block.inRepository ? this.#repository : this.#workspace;
    const { language, line, text } = block;
    if (language === "sh" || language === "bash") return this.#shell(text, cwd);
    const path = join(this.#workspace, `block-${line}.${language}`);
    writeFileSync(path, text);
    if (language === "js") return this.#node([path], cwd);
    if (language === "ts") return this.#node(["--import", join(this.#repository, "node_modules/tsx/dist/esm/index.mjs"), path], cwd);
    if (language === "py") return { program: "python3", args: [path], cwd, env: this.#env() };
    throw new Error(`no way is known to run "${language}"; use text, or say why with "illustrative"`);
  }

  async #startServer(args: string): Promise<void> {
    const healthy = async (): Promise<boolean> => {
      try {
        return (await fetch(`http://127.0.0.1:${PORT}/health`)).ok;
      } catch {
        // Nothing listens yet.
        return false;
      }
    };
    if (await healthy()) throw new Error(`port ${PORT} is already in use, end the server that has it`);
    await this.#background.start(this.#shell(`exec longshore dev --ephemeral --port ${PORT} ${args}`, this.#workspace), healthy);
  }

  #shell(script: string, cwd: string): Command {
    return { program: "bash", args: ["-euo", "pipefail", "-c", script], cwd, env: this.#env() };
  }

  #node(args: string[], cwd: string): Command {
    return { program: process.execPath, args, cwd, env: this.#env() };
  }

  #env(): NodeJS.ProcessEnv {
    const path = [join(this.#workspace, "node_modules/.bin"), dirname(process.execPath), process.env.PATH].join(":");
    return { ...process.env, PATH: path, NO_COLOR: "1", FORCE_COLOR: "0" };
  }
}

/** Every line of the shown output must appear, in order; `...` stands for any text in a line or for any lines. */
export function compareOutput(shown: string, actual: string): void {
  const actualLines = actual.split("\n");
  let position = 0;
  for (const line of shown.split("\n").map((one) => one.trimEnd())) {
    if (line === "" || line === "...") continue;
    const pattern = new RegExp(`^${line.split("...").map(escapePattern).join(".*")}$`);
    const found = actualLines.findIndex((one, index) => index >= position && pattern.test(one.trimEnd()));
    if (found === -1) throw new Error(`the shown line "${line}" was not printed; the output was:\n${actual}`);
    position = found + 1;
  }
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
