// Reads the public names of the package from its built declarations: each entry of `exports` in package.json, and what each name declares.
// TypeScript 7 offers no functions to call, so this uses version 6, as `longshore schema` does.
import { readFileSync } from "node:fs";
import { join, sep } from "node:path";
import ts from "typescript-6";

export interface Entry {
  /** As a program imports it, such as `longshore/server`. */
  readonly name: string;
  /** What it exports: first what a program calls, then types, each sorted by name. */
  readonly names: readonly PublicName[];
  /** Types that its signatures use and that no entry exports, sorted by name. */
  readonly hidden: readonly PublicName[];
}

export type Kind = "function" | "class" | "constant" | "interface" | "type";

export interface PublicName {
  readonly name: string;
  readonly kind: Kind;
  /** The text of its doc comment; empty when it has none. */
  readonly comment: string;
  /** Each declaration as in the `.d.ts` file; more than one for overloads, then with their own comments. */
  readonly declarations: readonly string[];
  /** Public names that the declarations use, with the entry that exports them. */
  readonly uses: readonly Home[];
}

/** Where a public name is described. */
export interface Home {
  readonly name: string;
  readonly kind: Kind;
  readonly entry: string;
}

/** `packageFolder` holds package.json; its entries must have been built. */
export function readEntries(packageFolder: string): Entry[] {
  const { name, exports } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")) as {
    name: string;
    exports: Record<string, { types?: string } | string>;
  };
  const files = new Map<string, string>();
  for (const [path, target] of Object.entries(exports)) {
    if (typeof target === "object" && target.types !== undefined) files.set(path.replace(/^\./, name), join(packageFolder, target.types));
  }
  const program = ts.createProgram([...files.values()], {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    types: ["node"],
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: true,
  });
  return new Reader(program.getTypeChecker(), program, packageFolder).read(files);
}

class Reader {
  readonly #checker: ts.TypeChecker;
  readonly #program: ts.Program;
  readonly #folder: string;
  /** The entry and the name under which a symbol is exported first. */
  readonly #homes = new Map<ts.Symbol, Home>();

  constructor(checker: ts.TypeChecker, program: ts.Program, folder: string) {
    this.#checker = checker;
    this.#program = program;
    this.#folder = folder;
  }

  read(files: ReadonlyMap<string, string>): Entry[] {
    const exported = new Map<string, Map<string, ts.Symbol>>();
    for (const [entry, file] of files) {
      const names = this.#exportsOf(file);
      exported.set(entry, names);
      for (const [name, symbol] of names) if (!this.#homes.has(symbol)) this.#homes.set(symbol, { name, kind: kindOf(symbol), entry });
    }
    return [...exported].map(([entry, names]) => ({
      name: entry,
      names: [...names].map(([name, symbol]) => this.#describe(name, symbol)),
      hidden: this.#hiddenBehind([...names.values()]).map((symbol) => this.#describe(symbol.name, symbol)),
    }));
  }

  #exportsOf(file: string): Map<string, ts.Symbol> {
    const source = this.#program.getSourceFile(file);
    const module = source === undefined ? undefined : this.#checker.getSymbolAtLocation(source);
    if (module === undefined) throw new Error(`${file} is missing or exports nothing; run \`npm run build\` first`);
    const all = this.#checker.getExportsOfModule(module).map((symbol) => ({ name: symbol.name, symbol: this.#real(symbol) }));
    const sorted = all.sort((a, b) => Number(isType(a.symbol)) - Number(isType(b.symbol)) || (a.name < b.name ? -1 : 1));
    return new Map(sorted.map(({ name, symbol }) => [name, symbol]));
  }

  #real(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  #describe(name: string, symbol: ts.Symbol): PublicName {
    const nodes = (symbol.declarations ?? []).map(statementOf);
    const uses = this.#usedBy(symbol)
      .map((used) => this.#homes.get(used))
      .filter((home) => home !== undefined)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return {
      name,
      kind: kindOf(symbol),
      comment: ts.displayPartsToString(symbol.getDocumentationComment(this.#checker)).trim(),
      declarations: nodes.map((node) => (nodes.length === 1 ? node.getText() : textWithComment(node))).map(tidy),
      uses,
    };
  }

  /** Our own types that the declarations of a symbol name, itself left out. */
  #usedBy(symbol: ts.Symbol): ts.Symbol[] {
    const found = new Set<ts.Symbol>();
    const visit = (node: ts.Node): void => {
      if (ts.isIdentifier(node)) {
        const at = this.#checker.getSymbolAtLocation(node);
        const used = at === undefined ? undefined : this.#real(at);
        if (used !== undefined && used !== symbol && this.#isOurs(used)) found.add(used);
      }
      ts.forEachChild(node, visit);
    };
    for (const declaration of symbol.declarations ?? []) visit(declaration);
    return [...found];
  }

  /** Whether it is declared at the top of one of our files: not a member, a parameter, or a name of another package. */
  #isOurs(symbol: ts.Symbol): boolean {
    return (symbol.declarations ?? []).some((declaration) => {
      const statement = statementOf(declaration);
      const { fileName } = statement.getSourceFile();
      return (
        statement.parent !== undefined &&
        ts.isSourceFile(statement.parent) &&
        fileName.startsWith(this.#folder) &&
        !fileName.includes(`${sep}node_modules${sep}`)
      );
    });
  }

  /** What these use directly and no entry exports. What that uses in turn is an internal matter. */
  #hiddenBehind(symbols: readonly ts.Symbol[]): ts.Symbol[] {
    const hidden = new Set(symbols.flatMap((symbol) => this.#usedBy(symbol)).filter((used) => !this.#homes.has(used)));
    return [...hidden].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

function kindOf({ flags }: ts.Symbol): Kind {
  if (flags & ts.SymbolFlags.Function) return "function";
  if (flags & ts.SymbolFlags.Class) return "class";
  if (flags & ts.SymbolFlags.Variable) return "constant";
  return flags & ts.SymbolFlags.Interface ? "interface" : "type";
}

/** The whole `const x: T` statement of a variable; any other declaration is its own. */
function statementOf(declaration: ts.Node): ts.Node {
  return ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
}

function isType(symbol: ts.Symbol): boolean {
  const kind = kindOf(symbol);
  return kind === "interface" || kind === "type";
}

function textWithComment(node: ts.Node): string {
  const comments = ts.getJSDocCommentsAndTags(node).filter((one) => ts.isJSDoc(one));
  return [...comments.map((comment) => comment.getText()), node.getText()].join("\n");
}

/** Two spaces a level as in the source, and neither private fields nor words that only say that it is a declaration. */
function tidy(text: string): string {
  const lines = text.split("\n").filter((line) => !/^\s*(?:#private;|private .*;)$/.test(line));
  const indented = lines.map((line) => line.replace(/^(?: {4})+/, (spaces) => " ".repeat(spaces.length / 2)));
  return indented.join("\n").replace(/^(?:export )?(?:declare )?/gm, "");
}
