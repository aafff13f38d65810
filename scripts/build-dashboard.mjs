// Builds the pages of the dashboard into the package: each file is named after a hash of its content and stored compressed, twice. The shell,
// which names these files, is in the manifest. Files that are there already are not written again, so a running server keeps its files.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { buildSync } from "esbuild";

const source = fileURLToPath(new URL("../packages/dashboard/src", import.meta.url));
const target = fileURLToPath(new URL("../packages/longshore/dist/ui", import.meta.url));

/**
 * Sizes in bytes, compressed with gzip; the build fails above them. `script` is what the first page loads, `all` is the code of all pages. `viewer` is the
 * script of an exported run, which repeats a part of that code and is only read by an export.
 */
const budgets = { script: 60_000, all: 120_000, viewer: 60_000, style: 12_000, files: 700_000 };

const types = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };

const common = {
  ...{ absWorkingDir: source, bundle: true, minify: true, write: false, format: "esm", target: "es2022", charset: "utf8" },
  ...{ jsx: "automatic", jsxImportSource: "preact", logLevel: "warning", legalComments: "none" },
};

export function buildDashboard() {
  const files = [];
  const add = (name, extension, text) => {
    const bytes = Buffer.from(text);
    const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
    const file = { name: `${name}-${hash}.${extension}`, type: types[extension], bytes };
    files.push(file);
    return file.name;
  };
  const bundle = (entry, define = {}) => buildSync({ ...common, entryPoints: [entry], define }).outputFiles[0].text;
  /** Its parts are named by esbuild, because they name each other. */
  const split = (entry, define) => {
    const names = { entryNames: "[name]-[hash]", chunkNames: "part-[hash]" };
    const built = buildSync({ ...common, ...names, splitting: true, metafile: true, outdir: "out", entryPoints: [entry], define });
    for (const { path, contents } of built.outputFiles) files.push({ name: basename(path), type: types.js, bytes: Buffer.from(contents) });
    return firstParts(built.metafile, entry);
  };
  const worker = add("layout", "js", bundle("graph/layout-worker.ts"));
  const style = add("style", "css", bundle("style.css"));
  const icon = add("icon", "svg", readFileSync(join(source, "icon.svg")));
  const named = (viewer) => ({
    WORKER_FILE: JSON.stringify(worker),
    STYLE_FILE: JSON.stringify(style),
    VIEWER_FILE: JSON.stringify(viewer),
  });
  const viewer = add("viewer", "js", bundle("viewer.tsx", named("")));
  const [script, ...parts] = split("main.tsx", named(viewer));
  write(files, shellOf({ style, icon, script, parts }), [script, ...parts]);
}

/** The files that the browser loads before the first page is shown: the entry, and what it imports. */
function firstParts({ outputs }, entry) {
  const first = Object.keys(outputs).find((path) => outputs[path].entryPoint === entry);
  const found = new Set([first]);
  for (const path of found) for (const { path: part, kind } of outputs[path].imports) if (kind === "import-statement") found.add(part);
  return [...found].map((path) => basename(path));
}

/** `ASSETS` is replaced by the server: pages are one to four folders deep. */
function shellOf({ style, icon, script, parts }) {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Longshore</title>
<link rel="icon" href="ASSETS${icon}">
<link rel="stylesheet" href="ASSETS${style}">
${parts.map((part) => `<link rel="modulepreload" href="ASSETS${part}">\n`).join("")}<script type="module" src="ASSETS${script}"></script>
</head>
<body>
<div id="app"></div>
<noscript>These pages need JavaScript. Without it, use the command line: npx longshore help</noscript>
</body>
</html>
`;
}

function write(files, shell, first) {
  mkdirSync(target, { recursive: true });
  const packed = files.map(({ name, bytes }) => ({ name, gz: gzipSync(bytes, { level: 9 }), bytes }));
  check(packed, first);
  const kept = new Set(["manifest.json"]);
  for (const { name, bytes, gz } of packed) {
    for (const [ending, content] of [
      ["gz", () => gz],
      ["br", () => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })],
    ]) {
      const file = `${name}.${ending}`;
      kept.add(file);
      if (!existsSync(join(target, file))) writeFileSync(join(target, file), content());
    }
  }
  const list = files.map(({ name, type, bytes }) => ({ name, type, bytes: bytes.length }));
  const manifest = `${JSON.stringify({ shell, files: list })}\n`;
  const place = join(target, "manifest.json");
  if (!existsSync(place) || readFileSync(place, "utf8") !== manifest) writeFileSync(place, manifest);
  for (const file of readdirSync(target)) if (!kept.has(file)) rmSync(join(target, file));
}

function check(packed, first) {
  const sum = (isCounted) => packed.filter(({ name }) => isCounted(name)).reduce((total, { gz }) => total + gz.length, 0);
  const is = (pattern) => (name) => pattern.test(name);
  const sizes = {
    script: sum((name) => first.includes(name)),
    all: sum(is(/^(?!viewer).*\.js$/)),
    viewer: sum(is(/^viewer/)),
    style: sum(is(/\.css$/)),
    files: sum(() => true) * 2,
  };
  for (const [kind, max] of Object.entries(budgets)) {
    if (sizes[kind] > max) throw new Error(`the dashboard is too large: ${kind} has ${sizes[kind]} bytes, at most ${max} are allowed`);
  }
  if (process.env.LONGSHORE_SIZES === "1") console.log(sizes);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildDashboard();
